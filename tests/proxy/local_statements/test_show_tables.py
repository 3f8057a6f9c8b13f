import pytest

from streamfrom.proxy.local_statements.show_tables import listed_tables, lists_tables
from tests.sqlparse_ext.facts import shape


HIDDEN = b" NOT IN ('streamfrom_members', 'streamfrom_decisions')"


@pytest.mark.parametrize(
    ("sql", "listed"),
    [
        ("SHOW TABLES", b"SHOW TABLES WHERE `Tables_in_db`"),
        ("show full tables;", b"SHOW FULL TABLES WHERE `Tables_in_db`"),
        ("SHOW TABLES FROM shop", b"SHOW TABLES FROM `shop` WHERE `Tables_in_db`"),
        ("SHOW FULL TABLES IN `a``b`", b"SHOW FULL TABLES FROM `a``b` WHERE `Tables_in_db`"),
        ("SHOW /* all */ TABLES -- of it", b"SHOW TABLES WHERE `Tables_in_db`"),
    ],
)
def test_the_proxies_own_tables_are_left_out(sql, listed):
    assert lists_tables(shape(sql))
    assert listed_tables(shape(sql), "db") == listed + HIDDEN


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW TABLES LIKE 'streamfrom%'",
        "SHOW TABLES FROM shop LIKE 'a'",
        "SHOW TABLES FROM `shop` LIKE 'a'",
        "SHOW TABLES WHERE 1 = 1",
        "SHOW FULL TABLES FROM `shop` WHERE Table_type = 'VIEW'",
        "SHOW TABLES FROM information_schema",
        "SHOW EXTENDED TABLES",
        "SHOW TABLE STATUS",
        "SHOW OPEN TABLES",
        "SHOW TABLES 'x'",
        "SHOW TABLES FROM shop 'x'",
        "SHOW TABLES FROM `shop` x",
        "SHOW TABLES x",
        "SHOW TABLES FROM",
        "SHOW COLUMNS FROM t",
    ],
)
def test_whatever_chooses_or_is_no_such_statement_stays_as_it_is(sql):
    assert not lists_tables(shape(sql))
