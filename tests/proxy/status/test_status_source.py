"""Who may see what of the schema `streamfrom`."""

from types import SimpleNamespace
from typing import Any

from streamfrom.engine.errors import TableLoadError
from streamfrom.engine.messaging.figures.figures import QueueFigures
from streamfrom.proxy.config.file import User
from streamfrom.proxy.status.fleet_figures import MemberFigures, MembersFigures, QueueAtMember
from streamfrom.proxy.status.status_rows import (
    QUEUES as COLUMNS,
    MemberStatus,
    ShardStatus,
    StreamClient,
    StreamStatus,
    Unanswered,
)
from streamfrom.proxy.status.status_source import StatusSource, Viewer
from tests.proxy.fleet.members import runtime
from tests.sim.memory_store import loaded, raw_table
from tests.virtual_loop import VirtualClock, run_virtual


STREAMS = [column.name for column in COLUMNS].index("streams")
ANN = User("ann", None, None)


def source() -> Any:
    async def queues():
        return [
            QueueFigures(loaded(raw_table(name), keyspace), (), 0)
            for keyspace, name in (("a", "one"), ("a", "two"), ("b", "one"))
        ]

    broken = {"bad": TableLoadError("bad", "why")}
    return StatusSource(
        SimpleNamespace(queues=queues, streams=list),  # type: ignore[arg-type]
        SimpleNamespace(tables=lambda keyspace: broken if keyspace == "b" else {}),  # type: ignore[arg-type]
        VirtualClock(),
        {("a", "0"): runtime("a"), ("b", "0"): runtime("b")},
        lambda: MemberStatus(None, "1", 1.0, 1, 0, 1, is_stopping=False),
        lambda keyspace, _: keyspace == "b",
    )


def test_a_shard_tells_whether_it_is_dispatched_here_and_nobody_is_asked_for_no_table():
    fleet = source()
    told = {shard.keyspace: shard.is_dispatched for shard in fleet.shard_status()}
    assert told == {"a": False, "b": True}
    fleet.others = Others()
    assert run_virtual(fleet.rows([], Viewer(ANN, is_admin=True, processes=[]))) == {}
    assert fleet.others.asked == []


class Others:
    """One member that answers and one that does not."""

    def __init__(self, dispatches=()):
        self.asked = []
        self.dispatches = dispatches

    async def ask(self, tables, viewer=None):
        self.asked.append((set(tables), viewer))
        client = StreamClient("ann", "h", 0, 5, None, "two")
        return MembersFigures(
            (
                MemberFigures(
                    MemberStatus(
                        "two", "1", 1.0, 1, 0, 1, is_stopping=False, dispatches=self.dispatches
                    ),
                    (QueueAtMember("a", "one", 3, ()),),
                    (StreamStatus(7, "a", "one", client, 4, 2, None, None),),
                    tuple(
                        ShardStatus(k, "0", "", "", None, 1, 1, 1, 1, member="two")
                        for k in "ab"
                    ),
                ),
            ),
            (Unanswered("zoe", "2", "h:1", "late"),),
        )


def test_what_other_members_tell_stands_among_ones_own():
    fleet = source()
    fleet.others = Others()
    viewer = Viewer(ANN, is_admin=True, processes=[])
    tables = ["queues", "streams", "shards", "members"]
    rows = run_virtual(fleet.rows(tables, viewer))
    assert fleet.others.asked == [(set(tables), viewer)]
    assert [(*row[:2], row[STREAMS]) for row in rows["queues"] if row[1] != "bad"] == [
        ("a", "one", 3),
        ("a", "two", 0),
        ("b", "one", 0),
    ]
    assert {row[-1] for row in rows["queues"] if row[1] != "bad"} == {"member zoe at h:1: late"}
    assert [(row[0], row[-1]) for row in rows["streams"]] == [(7, "two")]
    assert [(row[0], row[-1]) for row in rows["shards"]] == [
        ("a", None),
        ("a", "two"),
        ("b", None),
        ("b", "two"),
    ]
    assert [row[0] for row in rows["members"]] == [None, "two", "zoe"]
