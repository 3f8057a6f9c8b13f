"""The definition of the queue that `dead_letter = on` makes; tests/integration/queues/test_dead_letter_queue.py has it on servers."""

from streamfrom.engine.messaging.table.table_settings import parse_comment
from streamfrom.engine.messaging.upkeep.dead_letter_table import consents
from streamfrom.proxy.local_statements.dead_letter_queue import (
    columns_of,
    create,
    is_made_for,
    name_of,
)
from streamfrom.proxy.local_statements.queue_definitions import comment_in
from streamfrom.sqlparse_ext.statements import TableRef


COLUMNS = [
    ("id", "varchar(36)", "utf8mb4_bin"),
    ("priority", "tinyint", None),
    ("state", "varchar(11)", "utf8mb4_general_ci"),
    ("Body", "longtext", "utf8mb4_bin"),
    ("dead_reason", "text", "utf8mb4_general_ci"),
    ("last_error", "varchar(1000)", "utf8mb4_general_ci"),
]


def made(placed_by=None):
    return create(TableRef("ks", name_of("job")), "job", COLUMNS, placed_by).decode()


def test_it_has_the_queues_columns_without_their_constraints_and_how_each_failed():
    text = made()
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
    assert "table_schema = 'd''b' AND table_name = 'job' ORDER BY" in columns_of("d'b", "job")


def test_its_comment_consents_and_places_it_beside_its_queue():
    text = made(("hash", "id"))
    comment = comment_in(text.replace(") ENGINE", "\n) ENGINE"))
    assert consents(comment, "job")
    assert parse_comment(comment).shard_by == ("hash", "id")
    assert not is_made_for(comment, "job")
    assert is_made_for("vitess_message,vt_dead_letter=job_dead", "job")
