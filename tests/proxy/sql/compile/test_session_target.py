"""Where statements run."""

import pytest

from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.proxy.backends.session_variables import names
from streamfrom.proxy.errors import NoDatabaseSelected, ReplicaTarget, StreamOfReplica
from streamfrom.proxy.execution.session_state import SessionState
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import TableRef
from tests.cases import cases
from tests.proxy.fake_client import MODERN
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.proxy.sql.compilers import compiler


SECOND = Keyspace("second", (Shard.named("0"),))


def place(sql, use=None, keyspaces=(PLAIN, SHARDED)):
    made = compiler(use, keyspaces=keyspaces).target
    found = made.resolve(made.parse(sql.encode()))
    return found.view.keyspace.name, found.database, found.statement.sql.decode()


@cases(sql=str, use=str, renamed=str, shards=str)
def test_the_shards_that_answer_alike_have_what_the_text_names(sql, use, renamed, shards):
    made = compiler(use).target
    if renamed:
        made.lookup("commerce").runtimes[1].database = renamed
    view, database, found = made.resolve(made.parse(sql.encode()))
    able = made.any_of(view, database, found.shape)
    assert " ".join(each.name for each in able) == shards


@cases(use=str, condition=str, shown=str)
def test_a_database_is_called_as_the_session_or_the_statement_calls_it(use, condition, shown):
    made = compiler(use).target
    sql = f"SELECT 1 FROM information_schema.tables WHERE {condition}"
    view, names = made.shown_names(made.parse(sql.encode()))
    assert names == ({} if shown is None else {view.database: shown})


def test_one_database_by_two_names_is_refused():
    made = compiler("plain").target
    sql = b"SELECT 1 FROM information_schema.tables WHERE table_schema IN ('plain', 'db_plain')"
    with pytest.raises(Unsupported, match="one database by two names"):
        made.shown_names(made.parse(sql))


def test_schemas_of_two_servers_are_refused():
    sql = "SELECT 1 FROM information_schema.tables WHERE table_schema IN ('plain', 'commerce')"
    with pytest.raises(Unsupported, match="several servers"):
        place(sql, "plain")
    joined = "SELECT 1 FROM information_schema.tables, t WHERE table_schema = 'commerce'"
    with pytest.raises(Unsupported, match="several keyspaces"):
        place(joined, "plain")


def test_a_foreign_key_may_refer_to_another_keyspace_on_the_same_server():
    sql = "CREATE TABLE {} (a INT, FOREIGN KEY (a) REFERENCES {} (id))"
    for table, use, shown in (("t", "plain", "t"), ("plain.t", "second", "`db_plain`.t")):
        found = place(sql.format(table, "second.u"), use, (PLAIN, SECOND))
        assert found == ("plain", "db_plain", sql.format(shown, "`db_second`.u"))
    both = "CREATE TABLE plain.t (a INT, FOREIGN KEY (a) REFERENCES plain.u (id), FOREIGN KEY (a) REFERENCES second.u (id))"
    assert place(both, "second", (PLAIN, SECOND))[:2] == ("plain", "db_plain")
    altered = "ALTER TABLE second.t ADD FOREIGN KEY (a) REFERENCES plain.t (id)"
    assert place(altered, "plain", (PLAIN, SECOND))[:2] == ("second", "db_second")


def test_without_a_target_a_table_beside_a_qualified_one_has_no_database():
    for sql in (
        "SELECT * FROM plain.t JOIN u",
        "INSERT INTO u SELECT * FROM plain.t",
        "UPDATE plain.t, u SET t.a = 1",
        "CREATE TABLE u LIKE plain.t",
        "CREATE TABLE u (a INT, FOREIGN KEY (a) REFERENCES plain.t (id))",
    ):
        with pytest.raises(NoDatabaseSelected):
            place(sql)
    common = "WITH u AS (SELECT * FROM plain.t) SELECT * FROM u"
    assert place(common)[:2] == ("plain", "db_plain")


def test_two_keyspaces_in_one_statement_are_refused():
    for sql in (
        "SELECT * FROM plain.t JOIN commerce.t",
        "SELECT * FROM commerce.t JOIN `commerce:-80`.t",
        "SELECT * FROM commerce.t JOIN t AS u",
        "INSERT INTO t SELECT * FROM commerce.t",
        "CREATE TABLE t LIKE commerce.t",
        "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES commerce.t (id))",
    ):
        with pytest.raises(Unsupported, match="several keyspaces or targets"):
            place(sql, "plain")


class Replica:
    def __init__(self, name):
        self.name = self.dsn = name
        self.database = "db_plain"
        self.trouble = None


def reading(*replicas):
    return compiler("plain@replica", replicas={("plain", "-"): replicas}).target


def test_a_session_stays_with_its_replica_until_that_ails():
    replicas = Replica("one"), Replica("two")
    made = reading(*replicas)
    assert made.view is not None
    view, first = made.view, made.view.runtimes[0]
    assert made.lookup("plain@replica") is view
    made.leave_ailing_replicas()
    assert made.view is view
    first.trouble = "away"
    made.leave_ailing_replicas()
    assert made.view.runtimes[0] is replicas[first is replicas[0]]
    assert made.current(view) is made.view


@cases(sql=str)
def test_what_may_write_does_not_run_on_a_replica(sql):
    made = reading(Replica("one"))
    with pytest.raises(
        ReplicaTarget, match=r"^VT09002: [A-Z]+ statement with a replica target$"
    ):
        made.resolve(made.parse(sql.encode()))


def test_no_stream_reads_a_replica():
    made = reading(Replica("one"))
    with pytest.raises(StreamOfReplica, match=r"^VT09009: "):
        made.stream_source(TableRef(None, "msg"))


@pytest.mark.parametrize("charset", ["gbk", "sjis", "cp932", "big5", "gb18030"])
def test_where_a_quote_may_be_half_a_character_only_ascii_is_read(charset):
    state = SessionState(int(MODERN), names(charset, f"{charset}_bin"))
    session = compiler(state=state).target
    assert session.parse(b"SELECT 'it\\'s'").literals == (b"'it\\'s'",)
    with pytest.raises(Unsupported, match=f"in a statement in {charset}"):
        session.parse(b"SELECT '\xbf\\\\'; DROP TABLE t; -- '")
    state.use(names("utf8mb4", "utf8mb4_bin"))
    assert session.parse("SELECT 'é'".encode())


@pytest.mark.parametrize(
    ("part", "shards"),
    [(":-80", ["-80"]), ("/80-", ["80-"]), ("[80-]", ["80-"]), ("@primary", ["-80", "80-"])],
)
def test_a_target_without_a_keyspace_means_the_current_one(part, shards):
    made = compiler("commerce:80-").target
    made.use(part)
    assert [shard.name for shard in made.here().shards] == shards
    assert made.name == f"commerce{part}"


def test_it_needs_a_current_keyspace():
    made = compiler().target
    for _ in range(2):
        with pytest.raises(NoDatabaseSelected):
            made.use(":-80")
        made.use("information_schema")
    assert made.name == "information_schema"


@pytest.mark.parametrize(
    "sql", ["DELETE FROM t", "SHOW COLUMNS FROM t", "INSERT INTO t VALUES (1)", "TRUNCATE t"]
)
def test_in_the_schema_of_the_proxy_a_name_means_no_table_of_a_server(sql):
    with pytest.raises(NoDatabaseSelected):
        place(sql, "streamfrom")
    for named in ("DELETE FROM plain.t", "SHOW COLUMNS FROM t FROM plain"):
        assert place(named, "streamfrom")[0] == "plain"
