import ast

import pytest

from streamfrom.proxy.errors import BadQueue
from streamfrom.proxy.local_statements.show_queues import create_queue, show_queues
from streamfrom.sqlparse_ext.errors import SqlError
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


MYSQL = """CREATE TABLE `q` (
  `id` bigint NOT NULL,
  `priority` tinyint NOT NULL DEFAULT '50',
  `epoch` bigint NOT NULL DEFAULT '0',
  `time_next` bigint DEFAULT '0',
  `time_acked` bigint DEFAULT NULL,
  `state` varchar(11) GENERATED ALWAYS AS (case `time_acked`) VIRTUAL /*!80023 INVISIBLE */,
  `a` int DEFAULT NULL COMMENT 'x, y',
  PRIMARY KEY (`id`),
  KEY `poller_idx` (`time_acked`,`priority`,`time_next`),
  KEY `k` (`a`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='vitess_message,vt_ack_wait=30,vt_auto_id=on,vt_message_cols=id|a'"""
AGAIN = (
    "CREATE QUEUE `q` (\n  `a` int DEFAULT NULL COMMENT 'x, y',\n  KEY `k` (`a`)\n)\n"
    "WITH (ack_wait = 30, auto_id = on, message_cols = 'id|a')"
)


@pytest.mark.parametrize(("name", "unit"), [("p2027011523", "HOUR"), ("p20270115", "DAY")])
def test_a_partitioned_queue_is_made_again(name, unit):
    partitions = (
        f"\n/*!50100 PARTITION BY RANGE (`id`)\n(PARTITION {name} VALUES LESS THAN (215167795200000)"
        " ENGINE = InnoDB,\n PARTITION prest VALUES LESS THAN MAXVALUE ENGINE = InnoDB) */"
    )
    assert create_queue("q", MYSQL + partitions) == AGAIN.replace(
        "\nWITH", f" PARTITION BY {unit}\nWITH"
    )


def test_a_queue_says_how_it_is_sharded_and_what_create_queue_makes_by_itself_is_left_out():
    last_error = (
        "  `last_error` varchar(1000) DEFAULT NULL /*!80023 INVISIBLE */,\n  PRIMARY KEY"
    )
    own = MYSQL.replace("  PRIMARY KEY", last_error).replace(
        "vt_auto_id=on", "vt_shard_by=hash(id)"
    )
    expected = AGAIN.replace("\nWITH", " SHARD BY hash(id)\nWITH").replace("auto_id = on, ", "")
    assert create_queue("q", own) == expected.replace("'id|a')", "'id|a', auto_id = off)")


def test_the_index_of_polls_may_descend_as_vitess_documents_it():
    assert create_queue("q", MYSQL.replace("`time_next`)", "`time_next` DESC)")) == AGAIN


def test_the_index_that_its_settings_make_is_not_named():
    needed = "vt_purge_after=9,vt_batch_size=1,vt_cache_size=1,vt_poller_interval=9"
    ordered = MYSQL.replace(
        "  KEY `k` (`a`)",
        "  KEY `k` (`a`),\n  KEY `order_idx` (`a`,`time_acked`,`epoch`,`priority`,`time_next`)",
    ).replace("vt_message_cols=id|a", f"{needed},vt_key=a,vt_max_per_key=1")
    made = create_queue("q", ordered)
    assert "order_idx" not in made
    assert "key = a, max_per_key = 1" in made
    # Where the settings do not make it, it is an index like any other.
    assert "order_idx" in create_queue("q", ordered.replace("vt_key=a,vt_max_per_key=1", "x=1"))


@cases(old=str, new=str)
def test_a_table_that_create_queue_does_not_make(old, new):
    assert old in MYSQL
    with pytest.raises(BadQueue, match="no queue that CREATE QUEUE makes"):
        create_queue("q", MYSQL.replace(old, new))


@cases(sql=str, names=ast.literal_eval)
def test_names_in_order(sql, names):
    assert show_queues(statement(sql), {"b", "a_2", "a_1"}) == names


@pytest.mark.parametrize(
    "sql", ["SHOW QUEUES WHERE 1", "SHOW QUEUES LIKE 'a' LIKE 'b'", "SHOW QUEUES FROM a.b"]
)
def test_nothing_else(sql):
    with pytest.raises(SqlError, match="SHOW QUEUES takes"):
        show_queues(statement(sql), ())
