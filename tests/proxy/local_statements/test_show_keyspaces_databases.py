import ast

from streamfrom.proxy.local_statements.show_keyspaces import chosen_databases, show_databases
from tests.cases import cases
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.sqlparse_ext.facts import statement


KEYSPACES = [SHARDED, PLAIN]


@cases(sql=str, column=str, names=ast.literal_eval)
def test_they_are_the_keyspaces_in_sight(sql, column, names):
    (found,), rows = show_databases(statement(sql), KEYSPACES)
    assert (found.name, rows) == (column, [(name.encode(),) for name in names])


def test_what_a_where_says_is_for_a_server_to_decide():
    asked = statement("SHOW DATABASES WHERE `Database` = 'it''s'")
    text = chosen_databases(asked, [PLAIN])
    assert text == (
        b"SELECT `Database` FROM (SELECT CONVERT('information_schema' USING utf8mb4)"
        b" COLLATE utf8mb4_general_ci AS `Database` UNION ALL SELECT CONVERT('plain' USING"
        b" utf8mb4) COLLATE utf8mb4_general_ci) AS `SCHEMATA` WHERE `Database` = 'it''s'"
    )
