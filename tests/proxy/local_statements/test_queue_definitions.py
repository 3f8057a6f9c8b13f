import ast
import re

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.messaging.table.table_settings import parse_comment
from streamfrom.engine.messaging.upkeep.dead_letter_table import consents
from streamfrom.proxy.errors import BadQueue
from streamfrom.proxy.local_statements.queue_definitions import (
    alter_table,
    ask_columns,
    changed_comment,
    check_partitions,
    column_types,
    comment_in,
    create_dead_letters,
    create_table,
    drop_table,
    group_index,
    is_made_for,
    is_queue,
    new_comment,
    partition_unit,
    sharding,
    show_create_table,
)
from streamfrom.sqlparse_ext.reading.queues import read_queue
from streamfrom.sqlparse_ext.statements import TableRef
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement


NOW_NS = 1_800_000_000 * 10**9


def read(sql):
    return read_queue(statement(sql))


def altered(settings, comment):
    return changed_comment(read(f"ALTER QUEUE q SET ({settings})"), comment)


def test_a_queue_is_an_ordinary_message_table():
    queue = read("CREATE QUEUE ks.q (a INT, KEY k (a))")
    text = create_table(queue, new_comment(queue), NOW_NS).decode()
    assert text.startswith("CREATE TABLE IF NOT EXISTS `ks`.`q` (\n  `id` BIGINT NOT NULL,\n")
    assert (
        "  a INT,\n  KEY k (a),\n  `last_error` VARCHAR(1000) INVISIBLE DEFAULT NULL,\n  `state` VARCHAR(11) GENERATED"
        in text
    )
    assert " VIRTUAL INVISIBLE,\n  PRIMARY KEY (`id`),\n" in text
    assert shape(text).tables[0].name == "q"
    assert alter_table(queue.table, "x'y") == b"ALTER TABLE `ks`.`q` COMMENT='x''y'"
    assert drop_table(queue) == b"DROP TABLE IF EXISTS `ks`.`q`"
    assert show_create_table(queue.table) == b"SHOW CREATE TABLE `ks`.`q`"


@cases(settings=str, words=str)
def test_a_setting_that_cannot_be(settings, words):
    comment = new_comment(read("CREATE QUEUE q ()"))
    with pytest.raises(BadQueue) as error:
        altered(settings, comment)
    assert words in str(error.value)


def test_dead_letters_are_a_queue_of_their_own_where_they_are_on():
    comment = new_comment(read("CREATE QUEUE q ()"))
    assert (
        parse_comment(altered("dead_letter = On, max_attempts = 3", comment)).dead_letter
        == "q_dead"
    )


def placed(columns, shard_by):
    return sharding(read(f"CREATE QUEUE q ({columns}) {shard_by}"), "utf8mb4_general_ci")


@cases(columns=str, shard_by=str, expected=str)
def test_a_vindex_places_the_rows_by_the_type_of_their_column(columns, shard_by, expected):
    assert "{}({})".format(*placed(columns, shard_by)) == expected


@cases(columns=str, shard_by=str, words=str)
def test_rows_that_cannot_be_placed(columns, shard_by, words):
    with pytest.raises(BadQueue, match=re.escape(words)):
        placed(columns, shard_by)


def test_a_comment_with_a_backslash_is_left_alone():
    with pytest.raises(BadQueue, match="backslash"):
        altered("ack_wait = 1", "a\\b," + new_comment(read("CREATE QUEUE q ()")))


def test_pause_and_resume():
    comment = new_comment(read("CREATE QUEUE q ()"))
    paused = changed_comment(read("ALTER QUEUE q PAUSE"), comment)
    assert parse_comment(paused).paused
    assert changed_comment(read("ALTER QUEUE q PAUSE"), paused) == paused
    assert changed_comment(read("ALTER QUEUE q RESUME"), paused) == comment


@pytest.mark.parametrize(
    ("columns", "words"),
    [("epoch INT", "'epoch'"), ("`State` INT", "'state'"), ("PRIMARY KEY (a)", "PRIMARY KEY")],
)
def test_columns_that_every_queue_has(columns, words):
    with pytest.raises(BadQueue, match=words):
        create_table(read(f"CREATE QUEUE q ({columns})"), "", NOW_NS)


def partitioned(unit, more="", columns="a INT"):
    queue = read(f"CREATE QUEUE q ({columns}) PARTITION BY {unit} {more}")
    return create_table(queue, new_comment(queue), NOW_NS).decode()


def test_a_partitioned_queue_has_a_partition_for_each_unit_and_one_for_the_rest():
    text = partitioned("DAY")
    assert (
        "PARTITION BY RANGE (`id`) (PARTITION `p20270115` VALUES LESS THAN (215167795200000),"
        in text
    )
    assert text.endswith("PARTITION `prest` VALUES LESS THAN MAXVALUE)")


@cases(columns=str, more=str, words=str)
def test_a_queue_that_cannot_be_partitioned(columns, more, words):
    with pytest.raises(BadQueue, match=words):
        partitioned("HOUR", more, columns)


SERVERS = {
    "mysql": "\n/*!50100 PARTITION BY RANGE (`id`)\n(PARTITION {} VALUES LESS THAN ({}) ENGINE = InnoDB,\n"
    " PARTITION prest VALUES LESS THAN MAXVALUE ENGINE = InnoDB) */",
    "mariadb": "\n PARTITION BY RANGE (`id`)\n(PARTITION `{}` VALUES LESS THAN ({}) ENGINE = InnoDB,\n"
    " PARTITION `prest` VALUES LESS THAN MAXVALUE ENGINE = InnoDB)",
}


@pytest.mark.parametrize("server", SERVERS)
@cases(name=str, until=ast.literal_eval, expected=str)
def test_the_partitions_of_a_definition(server, name, until, expected):
    text = "CREATE TABLE `q` (\n  `id` bigint\n) ENGINE=InnoDB COMMENT='vitess_message'"
    assert partition_unit(text + SERVERS[server].format(name, until)) == expected
    assert comment_in(text + SERVERS[server].format(name, until)) == "vitess_message"


def test_other_partitions_and_none():
    text = "CREATE TABLE `q` (\n  `id` bigint\n) ENGINE=InnoDB"
    assert partition_unit(text) is None
    assert partition_unit(text + "\n/*!50100 PARTITION BY KEY ()\nPARTITIONS 4 */") == "KEY"
    assert partition_unit(text + "\n PARTITION BY HASH (`id`)\nPARTITIONS 4") == "HASH"
    check_partitions("HASH", "")
    check_partitions(None, "")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\\\0")))
def test_a_comment_is_found_in_a_definition(comment):
    quoted = comment.replace("'", "''")
    text = f"CREATE TABLE `q` (\n  `a` int COMMENT='no'\n) ENGINE=InnoDB COMMENT='{quoted}'"
    assert comment_in(text) == comment
    assert is_queue(text) == ("vitess_message" in comment and "vitess_sequence" not in comment)


def test_a_definition_without_a_comment():
    assert comment_in("CREATE TABLE `q` (\n  `a` int\n) ENGINE=InnoDB") == ""


def test_a_queue_in_order_has_the_index_that_finds_what_goes_next():
    made = read("CREATE QUEUE q (tenant INT) WITH (key = tenant, max_per_key = 1)")
    definition = create_table(made, new_comment(made), NOW_NS).decode()
    index = "KEY `order_idx` (`tenant`, `time_acked`, `epoch`, `priority`, `time_next`)"
    assert index in definition
    types = column_types(definition)
    assert (types["id"], types["tenant"], types["priority"]) == ("bigint", "int", "tinyint")
    made = read("CREATE QUEUE q (`a b` VARCHAR(9), c\n INT UNSIGNED) WITH (order = strict)")
    definition = create_table(made, new_comment(made), NOW_NS).decode()
    assert "KEY `order_idx` (`time_acked`, `epoch`, `priority`, `time_next`)" in definition
    types = column_types(definition)
    assert (types["a b"], types["c"]) == ("varchar", "int")


def created(columns, settings):
    queue = read_queue(statement(f"CREATE QUEUE q ({columns}) WITH ({settings})"))
    return queue, new_comment(queue)


@cases(group=str, after=str)
def test_a_queue_with_groups_has_their_index(group, after):
    queue, text = created(f"`Batch` {group}, f {after}", "group = batch, after = f")
    assert group_index(queue, text) == (b"KEY `group_idx` (`batch`, `time_acked`)",)
    assert b",\n  KEY `group_idx` (`batch`, `time_acked`)\n) ENGINE" in create_table(
        queue, text, NOW_NS
    )


def test_a_queue_without_groups_or_with_such_an_index_gets_none():
    assert group_index(*created("a INT", "ack_wait = 1")) == ()
    queue, text = created(
        "a INT, b INT, KEY `group_idx` (`a`,`time_acked`)", "group = a, after = b"
    )
    assert group_index(queue, text) == ()


@cases(settings=str, fault=str)
def test_groups_of_other_columns_make_no_queue(settings, fault):
    queue, text = created("a INT, b INT, t VARCHAR(9)", settings)
    with pytest.raises(BadQueue, match=fault):
        create_table(queue, text, NOW_NS)


JOB_COLUMNS = [
    ("id", "varchar(36)", "utf8mb4_bin"),
    ("priority", "tinyint", None),
    ("state", "varchar(11)", "utf8mb4_general_ci"),
    ("Body", "longtext", "utf8mb4_bin"),
    ("dead_reason", "text", "utf8mb4_general_ci"),
    ("last_error", "varchar(1000)", "utf8mb4_general_ci"),
]


def dead_letters(placed_by=None):
    return create_dead_letters(
        TableRef("ks", "job_dead"), "job", JOB_COLUMNS, placed_by
    ).decode()


def test_dead_letters_have_the_queues_columns_without_their_constraints_and_how_each_failed():
    text = dead_letters()
    assert text.startswith(
        "CREATE TABLE IF NOT EXISTS `ks`.`job_dead` (\n  `id` varchar(36) COLLATE utf8mb4_bin NOT NULL,\n"
    )
    assert "`Body` longtext COLLATE utf8mb4_bin DEFAULT NULL" in text
    assert (
        "`last_error` varchar(1000) COLLATE utf8mb4_general_ci INVISIBLE DEFAULT NULL" in text
    )
    assert "`dead_time` BIGINT" in text
    assert text.count("dead_reason") == 1, "the queue has one of that name"
    assert text.count("`priority` ") == 1
    assert text.count("`state` ") == 1


def test_columns_are_asked_for_by_names_that_may_hold_any_sign():
    assert "table_schema = 'd''b' AND table_name = 'job' ORDER BY" in ask_columns("d'b", "job")


def test_the_comment_for_dead_letters_consents_and_places_it_beside_its_queue():
    text = dead_letters(("hash", "id"))
    comment = comment_in(text.replace(") ENGINE", "\n) ENGINE"))
    assert consents(comment, "job")
    assert parse_comment(comment).shard_by == ("hash", "id")
    assert not is_made_for(comment, "job")
    assert is_made_for("vitess_message,vt_dead_letter=job_dead", "job")
