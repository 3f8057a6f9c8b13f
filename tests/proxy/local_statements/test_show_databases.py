import ast

import pytest

from streamfrom.proxy.local_statements.show_databases import (
    chooses_databases,
    chosen_databases,
    is_show_databases,
    show_databases,
)
from tests.cases import cases
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.sqlparse_ext.facts import shape, statement


KEYSPACES = [SHARDED, PLAIN]


@cases(sql=str, column=str, names=ast.literal_eval)
def test_they_are_the_keyspaces_in_sight(sql, column, names):
    found, values = show_databases(statement(sql), KEYSPACES)
    assert (found.name, values) == (column, names)
    assert not chooses_databases(shape(sql))


@pytest.mark.parametrize("sql", ["SHOW TABLES", "SHOW DATABASES FROM x", "SELECT DATABASE()"])
def test_nothing_else_is_about_databases(sql):
    assert not is_show_databases(shape(sql))
    assert not chooses_databases(shape(sql))


def test_what_a_where_says_is_for_a_server_to_decide():
    asked = statement("SHOW DATABASES WHERE `Database` = 'it''s'")
    assert chooses_databases(asked.shape)
    text = chosen_databases(asked, [PLAIN])
    assert text == (
        b"SELECT `Database` FROM (SELECT CONVERT('information_schema' USING utf8mb4)"
        b" COLLATE utf8mb4_general_ci AS `Database` UNION ALL SELECT CONVERT('plain' USING"
        b" utf8mb4) COLLATE utf8mb4_general_ci) AS `SCHEMATA` WHERE `Database` = 'it''s'"
    )
