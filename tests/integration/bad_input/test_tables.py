"""Tables whose comment or vindex is wrong are told of and passed over."""

from itertools import product

import pytest

from tests.cases import in_turn
from tests.fixtures.streams import Consume, message_table, refused, rows, run
from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db

BAD = ("missing", "0", "-5", "ten", "", "1e999x", "0.0")


class TestComments:
    @in_turn
    @pytest.mark.parametrize(
        ("key", "bad"),
        [
            *product(("vt_ack_wait", "vt_cache_size"), BAD),
            *product(("vt_purge_after", "vt_batch_size", "vt_poller_interval"), BAD[:2]),
        ],
    )
    def test_each_key_is_named_when_its_value_is_bad(self, cluster, key, bad):
        connection = cluster.proxy.connect(database="plain", autocommit=True)
        start, _, rest = message_table().partition(f"{key}=")
        digits = len(rest) - len(rest.lstrip("0123456789."))
        new = start + (f"{key}={bad}" if bad != "missing" else "") + rest[digits:]
        run(connection, new)
        code, text = refused(connection, "STREAM * FROM my_message")
        assert code == 1105
        if bad in ("missing", ""):
            why = f"attribute {key} not specified for message table"
        else:
            why = f"{key} must be"
        assert text.startswith(f"message table 'my_message' failed to load: {why}"), text
        run(connection, "DROP TABLE my_message")

    @in_turn
    @pytest.mark.parametrize("column", ["id", "priority", "epoch", "time_next", "time_acked"])
    def test_a_missing_column_is_named(self, cluster: SharedCluster, column: str) -> None:
        connection = cluster.proxy.connect(database="plain", autocommit=True)
        columns = {"id", "priority", "epoch", "time_next", "time_acked", "message"} - {column}
        comment = message_table().partition("COMMENT")[2]
        definitions = ", ".join(f"{name} BIGINT" for name in sorted(columns))
        run(connection, f"CREATE TABLE my_message ({definitions}) COMMENT {comment}")
        assert refused(connection, "STREAM * FROM my_message") == (
            1105,
            "message table 'my_message' failed to load:"
            f" {column} missing from message table: my_message",
        )
        run(connection, "DROP TABLE my_message")

    def test_blanks_do_not_count(self, cluster: SharedCluster, consume: Consume) -> None:
        connection = cluster.proxy.connect(database="plain", autocommit=True)
        run(connection, message_table().replace(",vt_", " , vt_").replace("=", " = "))
        stream = consume(cluster.proxy, database="plain")
        run(connection, "INSERT INTO my_message (id) VALUES (1)")
        assert stream.next()[0] == 1


class TestVindex:
    @in_turn
    @pytest.mark.parametrize(
        ("sql", "code"),
        [
            ("INSERT INTO customer (name) VALUES ('x')", 1364),
            ("INSERT INTO customer (id, name) VALUES (NULL, 'x')", 1048),
            ("INSERT INTO customer (id, name) VALUES (1, 'a'), (NULL, 'b')", 1048),
            ("INSERT INTO customer (id, name) VALUES ('abc', 'x')", 1366),
            ("INSERT INTO customer (id, name) VALUES (1.5, 'x')", 1366),
            ("INSERT INTO customer (id, name) VALUES (1 + 1, 'x')", 1235),
            ("INSERT INTO customer (id, name) VALUES (DEFAULT, 'x')", 1235),
            ("INSERT INTO customer SET name = 'x'", 1364),
            ("INSERT INTO customer SET id = NULL", 1048),
            ("REPLACE INTO customer (name) VALUES ('x')", 1364),
            ("UPDATE customer SET id = 2 WHERE id = 1", 1235),
            ("INSERT INTO customer (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 5", 1235),
            ("INSERT INTO nosuch (id) VALUES (1)", 1235),
            ("SELECT * FROM nosuch", 1235),
        ],
    )
    def test_a_vindex_column_that_cannot_be_used(self, cluster, sql, code):
        connection = cluster.proxy.connect(database="commerce", autocommit=True)
        run(
            connection,
            "CREATE TABLE IF NOT EXISTS customer (id BIGINT PRIMARY KEY, name VARCHAR(20))",
        )
        found, text = refused(connection, sql)
        assert found == code, text
        assert not rows(connection, "SELECT id FROM customer")
