"""Texts that look like SQL, well formed or not, for the property tests."""

from hypothesis import strategies as st

from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode


# One of each thing a lexer can stumble over, without regard for what may follow what.
FRAGMENTS = [
    *b"select insert into replace update delete from where set values t `a b` id ks.t a.b.c t.5".split(),
    *b"1abc 5 -5 .5 5. 1e5 0x1F x'ff' X' b'01' N'x' _utf8mb4'x' _latin1'x' 'a' 'it''s' ' \" `".split(),
    *b"( ) , ; = <=> < > != := @x @@x @'q' @ + - -- # /* */ /*! /*!40101 /*!99999 /*M! ? % {".split(),
    *b"and or not in is null default between case end join as order by limit group union stream".split(),
    *b"count( now() now(6) interval second time_acked time_next with table show explain kill".split(),
    *b"begin create procedure if use lock load data call xa prepare commit savepoint drop row(".split(),
    b"'a\\'b'", b"_binary 'x'", b"- 5", b"-- c\n", b"#c\n", b"/* c */", b"/*+ h */", b"/*vt+ A=B */",
    b"in (1, 2)", b"on duplicate key update", b"values (1,'x'),(2,null)", b"(select 1)",
    b"\\", b"\0", b"\1", b"\2", b"\3", b"\4", b"\5", b"\6", b"\n", b"\t", b"  ", b"\xff\xfe",
    "é".encode(), b"for update", b"into @x", b"insert into t (id) values (1),(now())",
    b"update t set time_acked = now()", b"select * from t where id = 5 and",
]  # fmt: skip

MODES = st.one_of(st.just(DEFAULT_MODE), st.integers(0, 7).map(SqlMode))

texts = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=14).map(b" ".join),
    st.lists(st.sampled_from(FRAGMENTS), max_size=10).map(b"".join),
)
