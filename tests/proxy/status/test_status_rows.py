"""Rows of the schema `streamfrom`: what is asked of it, and what the figures become."""

from dataclasses import replace

from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.figures.figures import QueueFigures, StreamFigures
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.status.status_rows import (
    QUEUES,
    TABLES,
    TEXT_MAX,
    MemberStatus,
    Unanswered,
    queue_rows,
    rows_of,
    stream_status,
)
from tests.proxy.status.test_queue_figures import SECOND_NS, TABLE, on_shard


def test_a_table_that_cannot_be_used_stands_among_the_others():
    error = TableLoadError("bad", "no time_next")
    rows = queue_rows([QueueFigures(TABLE, (), 0)], [("a", error)], 0)
    assert [row[:2] for row in rows] == [("a", "bad"), ("ks", "msg")]
    assert rows[0][-2:] == ("no time_next", None)
    assert len(rows[0]) == len(rows[1]) == len(QUEUES)


def test_a_queue_whose_dispatcher_does_not_answer_tells_what_is_known():
    queue = QueueFigures(
        TABLE,
        (on_shard("-80", ready=3, in_flight=2, oldest_ready_ns=0), on_shard("80-")),
        1,
        unknown=frozenset({"80-"}),
        unanswered=(
            str(Unanswered("a", "1", "h:1", "late")),
            str(Unanswered("b", "1", "", "x")),
        ),
    )
    (row,) = queue_rows([queue], [], 9)
    told = dict(zip((column.name for column in QUEUES), row, strict=True))
    assert told["ready"] is told["in_flight"] is told["oldest_ready_age_s"] is None
    assert told["unanswered"] == "member a at h:1: late; member b: x"
    assert told["error"] is None


def test_only_streams_of_connections_in_sight_are_told():
    def stream(connection_id):
        return StreamFigures(
            TABLE, connection_id, frozenset({"-80"}), 0, 5, 2, SECOND_NS, 9, None
        )

    process = Process(7, "ann", "10.0.0.1", None, "Query", 0, "streaming", None)
    others = replace(stream(9), is_for_member=True)
    told = stream_status([stream(7), stream(8), others], [process], "a")
    assert [one.connection_id for one in told] == [7, 9]
    (row,) = rows_of("streams", told[:1], 3 * SECOND_NS)
    assert row == (7, "ann", "10.0.0.1", "ks", "msg", "-80", 3.0, 9, 5, 2, 2.0, None, "a")
    assert len(row) == len(TABLES["streams"])


def test_a_member_tells_its_clock_and_certificate_and_one_that_is_silent_has_a_row():
    member = MemberStatus("a", "1", 1, 3, 2, 9, is_stopping=False, clock_unix_s=100.5)
    silent = Unanswered("a", "1.0", "h:1", "e" * 5000)
    told, row = rows_of("members", [replace(member, certificate_expires_s=90.0), silent], 0)
    named = dict(zip((column.name for column in TABLES["members"]), told, strict=True))
    assert (named["clock_unix_s"], named["certificate_expires_in_s"]) == (100.5, -10.5)
    assert row[:3] == ("a", "1.0", None)
    assert row[-6:-1] == ("h:1", None, 0, None, None)
    assert len(row) == len(told)
    assert len(str(row[-1])) == TEXT_MAX, "what is longer a server takes for NULL"
