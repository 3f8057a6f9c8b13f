from streamfrom.proxy.local_statements.show_vitess import Tablet, show_vitess
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.sqlparse_ext.facts import statement


TABLETS = [
    Tablet("commerce", "-80", True, "db1:3306", "db1", True),
    Tablet("commerce", "-80", False, "db2:3306", "db2", False),
    Tablet("plain", "-", True, "/run/mysqld.sock", "localhost", True),
]


def told(sql, target=""):
    found = statement(sql)
    columns, rows = show_vitess(found, [SHARDED, PLAIN], TABLETS, target)
    return [column.name for column in columns], rows


def test_a_tablet_is_a_server_of_a_shard():
    names, rows = told("SHOW VITESS_TABLETS")
    assert names == [
        *("Cell", "Keyspace", "Shard", "TabletType"),
        *("State", "Alias", "Hostname", "PrimaryTermStartTime"),
    ]
    assert rows == [
        (b"", b"commerce", b"-80", b"PRIMARY", b"SERVING", b"db1:3306", b"db1", b""),
        (b"", b"commerce", b"-80", b"REPLICA", b"NOT_SERVING", b"db2:3306", b"db2", b""),
        (b"", b"plain", b"-", b"PRIMARY", b"SERVING", b"/run/mysqld.sock", b"localhost", b""),
    ]


def test_like_chooses_tablets_by_host_and_where_chooses_none_as_in_vitess():
    assert [row[6] for row in told("SHOW VITESS_TABLETS LIKE 'db_'")[1]] == [b"db1", b"db2"]
    assert len(told("SHOW vitess_tablets WHERE keyspace = 'x'")[1]) == 3
