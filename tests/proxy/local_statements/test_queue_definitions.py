import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.messaging.table_comment import parse_comment
from streamfrom.proxy.errors import BadQueue
from streamfrom.proxy.local_statements.queue_definitions import (
    DEFAULTS,
    alter_table,
    changed_comment,
    comment_in,
    create_table,
    drop_table,
    is_queue,
    new_comment,
    show_create_table,
)
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.queues import read_queue
from tests.sqlparse_ext.facts import shape, statement


def read(sql):
    return read_queue(statement(sql))


def altered(settings, comment):
    return changed_comment(read(f"ALTER QUEUE q SET ({settings})"), comment)


def test_a_queue_is_an_ordinary_message_table():
    queue = read("CREATE QUEUE ks.q (a INT, KEY k (a))")
    text = create_table(queue, new_comment(queue)).decode()
    assert text.startswith("CREATE TABLE IF NOT EXISTS `ks`.`q` (\n  `id` BIGINT NOT NULL,\n")
    assert "  a INT,\n  KEY k (a),\n  `state` VARCHAR(11) GENERATED" in text
    assert " VIRTUAL INVISIBLE,\n  PRIMARY KEY (`id`),\n" in text
    assert shape(text).tables[0].name == "q"
    assert alter_table(queue, "x'y") == b"ALTER TABLE `ks`.`q` COMMENT='x''y'"
    assert drop_table(queue) == b"DROP TABLE IF EXISTS `ks`.`q`"
    assert show_create_table(queue.table) == b"SHOW CREATE TABLE `ks`.`q`"


def test_an_id_may_be_ones_own():
    queue = read("CREATE QUEUE q (`ID` VARCHAR(36) NOT NULL)")
    text = create_table(queue, "").decode()
    assert "`id` BIGINT" not in text
    assert "`ID` VARCHAR(36) NOT NULL" in text


def test_the_comment_has_a_default_for_each_key_that_a_message_table_needs():
    comment = new_comment(read("CREATE QUEUE q ()"))
    assert parse_comment(comment).ack_wait_ns == 30 * 10**9
    assert all(f"{key}={value}" in comment for key, value in DEFAULTS.items())
    changed = new_comment(read("CREATE QUEUE q () WITH (batch_size = 7, order = newest)"))
    assert parse_comment(changed).batch_size == 7
    assert parse_comment(changed).newest
    assert changed.count("vt_batch_size") == 1


def test_what_an_alter_does_not_name_stays():
    before = (
        "my jobs, vitess_message, vt_ack_wait=1,vt_ack_wait=2,vt_purge_after=3,vt_batch_size=4"
    )
    before += ",vt_cache_size=5,vt_poller_interval=6,vt_max_backoff=7"
    after = altered("ack_wait = 9, prefetch = 3, purge_after = DEFAULT", before)
    assert after == (
        "my jobs,vitess_message,vt_ack_wait=9,vt_purge_after=86400,vt_batch_size=4"
        ",vt_cache_size=5,vt_poller_interval=6,vt_max_backoff=7,vt_prefetch=3"
    )
    assert altered("prefetch = DEFAULT", after) == after.replace(",vt_prefetch=3", "")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("ack_wiat = 1", "unknown setting 'ack_wiat' of a queue; did you mean ack_wait?"),
        ("vt_ack_wait = 1", "unknown setting 'vt_ack_wait' of a queue; did you mean ack_wait?"),
        ("zzz = 1", "unknown setting 'zzz' of a queue"),
        ("ack_wait = 0", "vt_ack_wait must be a number of seconds greater than 0, not '0'"),
        ("ack_wait = ' '", "ack_wait cannot be ' '"),
        ("ack_wait = '1,vt_order=newest'", "ack_wait cannot be"),
        ("message_cols = 'a\\\\b'", "message_cols cannot be"),
        ("batch_size = 1.5", "vt_batch_size must be a whole number greater than 0, not '1.5'"),
        (f"message_cols = '{'c' * 3000}'", "longer than the 2048 characters"),
    ],
)
def test_a_setting_that_cannot_be(settings, words):
    comment = new_comment(read("CREATE QUEUE q ()"))
    with pytest.raises(BadQueue) as error:
        altered(settings, comment)
    assert words in str(error.value)


def test_a_comment_with_a_backslash_is_left_alone():
    with pytest.raises(BadQueue, match="backslash"):
        altered("ack_wait = 1", "a\\b," + new_comment(read("CREATE QUEUE q ()")))


def test_ids_are_made_unless_there_is_one():
    assert parse_comment(new_comment(read("CREATE QUEUE q (a INT)"))).auto_id
    assert not parse_comment(new_comment(read("CREATE QUEUE q (ID CHAR(9))"))).auto_id
    off = new_comment(read("CREATE QUEUE q (a INT) WITH (auto_id = off)"))
    assert not parse_comment(off).auto_id


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
        create_table(read(f"CREATE QUEUE q ({columns})"), "")


def test_partitions_are_refused():
    with pytest.raises(Unsupported):
        create_table(read("CREATE QUEUE q () PARTITION BY HOUR"), "")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\\\0")))
def test_a_comment_is_found_in_a_definition(comment):
    quoted = comment.replace("'", "''")
    text = f"CREATE TABLE `q` (\n  `a` int COMMENT='no'\n) ENGINE=InnoDB COMMENT='{quoted}'"
    assert comment_in(text) == comment
    assert is_queue(text) == ("vitess_message" in comment and "vitess_sequence" not in comment)


def test_a_definition_without_a_comment():
    assert comment_in("CREATE TABLE `q` (\n  `a` int\n) ENGINE=InnoDB") == ""
