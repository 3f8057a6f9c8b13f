import pytest

from streamfrom.proxy.local_statements.local_answers import answer, is_answered_locally
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.sqlparse_ext.facts import shape, statement


def told(sql, connection_id=7):
    found = statement(sql)
    assert is_answered_locally(found.shape)
    column, values = answer(found, [PLAIN, SHARDED], connection_id)
    return column.name, values


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW TABLES",
        "SHOW DATABASES FROM x",
        "SHOW VARIABLES",
        "SHOW GRANTS",
        "SHOW GRANTS FOR CURRENT_USER()",
        "SELECT 1",
        "SELECT CONNECTION_ID() + 1",
        "SELECT CONNECTION_ID() FROM t",
        "EXPLAIN SELECT 1",
    ],
)
def test_everything_else_is_for_the_servers(sql):
    assert not is_answered_locally(shape(sql))


def test_databases_are_the_keyspaces_in_sight():
    assert told("SHOW DATABASES") == ("Database", ["commerce", "information_schema", "plain"])


def test_shards_are_named_as_vitess_names_them():
    assert told("SHOW VITESS_SHARDS") == ("Shards", ["commerce/-80", "commerce/80-", "plain/-"])


def test_shards_may_be_chosen_by_a_pattern():
    assert told("SHOW VITESS_SHARDS LIKE '%/-80'") == ("Shards", ["commerce/-80"])


def test_a_where_on_the_shards_chooses_nothing_as_in_vitess():
    assert len(told("SHOW VITESS_SHARDS WHERE shards = 'x'")[1]) == 3


@pytest.mark.parametrize("sql", ["SELECT CONNECTION_ID()", "select connection_id()"])
def test_a_client_is_told_the_id_that_kill_takes(sql):
    assert told(sql) == ("CONNECTION_ID()", ["7"])
