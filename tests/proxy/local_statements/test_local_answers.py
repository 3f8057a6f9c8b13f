import pytest

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.local_statements.local_answers import answer, is_answered_locally
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.sqlparse_ext.facts import shape, statement


ADMIN = User("root", Secret(""), None, Role.READWRITE, None)
READER = User("eve", Secret(""), None, Role.READONLY, None)


def told(sql, user=ADMIN, connection_id=7):
    found = statement(sql)
    assert is_answered_locally(found.shape)
    column, values = answer(found, [PLAIN, SHARDED], user, connection_id)
    return column.name, values


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW TABLES",
        "SHOW DATABASES FROM x",
        "SHOW VARIABLES",
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


def test_grants_are_those_of_the_proxys_account():
    name, values = told("SHOW GRANTS")
    assert name == "Grants for root@%"
    assert values == [
        "GRANT USAGE ON *.* TO `root`@`%`",
        "GRANT ALL PRIVILEGES ON `commerce`.* TO `root`@`%`",
        "GRANT ALL PRIVILEGES ON `plain`.* TO `root`@`%`",
    ]
    _, values = told("SHOW GRANTS FOR CURRENT_USER()", READER)
    assert values[1] == "GRANT SELECT ON `commerce`.* TO `eve`@`%`"


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW GRANTS FOR app@localhost",
        "SHOW GRANTS FOR 'app'@'%'",
        "SHOW GRANTS FOR `app` USING r",
    ],
)
def test_the_grants_of_a_servers_account_are_the_servers(sql):
    assert not is_answered_locally(shape(sql))
