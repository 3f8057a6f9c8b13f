from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.session.session_calls import inline
from tests.cases import cases


VALUES = {
    "FOUND_ROWS": b"5", "CONNECTION_ID": b"17", "CURRENT_USER": b"'ann@%'", "@@WARNING_COUNT": b"2",
    "@@SOCKET": b"'/p.sock'",
}  # fmt: skip


def inlined(sql: str) -> str:
    return inline(StatementCache().get(sql.encode()), VALUES).decode()


@cases(sql=str, result=str)
def test_a_call_becomes_its_value_and_its_column_keeps_the_name(sql, result):
    assert inlined(sql) == result


@cases(sql=str)
def test_what_is_no_such_call_stays(sql):
    assert inlined(sql) == sql


@cases(sql=str, result=str)
def test_who_holds_a_lock_is_told_in_other_numbers(sql, result):
    statement = StatementCache().get(sql.encode())
    assert inline(statement, VALUES, {30: 17, 31: 18}).decode() == result
