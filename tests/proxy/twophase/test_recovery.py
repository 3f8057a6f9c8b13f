import asyncio

import pytest
import structlog

from streamfrom.engine.clock import SystemClock
from streamfrom.proxy.twophase.coordinator import Coordinator
from streamfrom.proxy.twophase.decisions import Decisions
from streamfrom.proxy.twophase.recovery import Recovery
from streamfrom.proxy.twophase.xid import FORMAT_ID, GlobalId
from streamfrom.proxy.wire.constants import FieldType
from tests.proxy.fake_answers import HANG_S, Error, Rows, until
from tests.proxy.rigs import add_decisions


A, B = "a" * 16, "b" * 16
WHOLE = GlobalId(A, "1" * 32)
XID = WHOLE.branch(B)
DECIDED = Rows(("id",), ((str(WHOLE).encode(),),))
UNDECIDED = Rows(("id",))


def prepared(*xids):
    return Rows(
        ("formatID", "gtrid_length", "bqual_length", "data"),
        tuple(
            (b"%d" % FORMAT_ID, b"60", b"16", f"{xid.whole}{xid.branch}".encode())
            for xid in xids
        ),
        types=(*[FieldType.LONG] * 3, FieldType.VAR_STRING),
    )


class Watch:
    """A recovery over two shards, the first of which decides; it looks when told to."""

    def __init__(self, *shards):
        self.shards = shards
        self.decisions = Decisions(lambda: "f" * 16)
        self.coordinator = Coordinator(
            self.decisions, SystemClock(), patience_s=HANG_S, new_number=lambda: "1" * 32
        )
        self.recovery = Recovery(shards, self.decisions, self.coordinator, grace_s=1e-9)

    async def looks(self, times=2):
        with structlog.testing.capture_logs() as logs:
            for _ in range(times):
                await self.recovery.look()
                await asyncio.sleep(0.001)
        return [entry["event"] for entry in logs]


@pytest.fixture
async def watch(server, other_server, low, high):
    add_decisions(server, A)
    add_decisions(other_server, B)
    return Watch(low, high)


def finished(server):
    return [t for t in server.controlled if t.startswith(("XA COMMIT", "XA ROLLBACK"))]


COMMIT, ROLLBACK = f"XA COMMIT {XID}", f"XA ROLLBACK {XID}"
HELD = Error(3572, "NOWAIT is set")
GONE = Error(1397, "XAER_NOTA: Unknown XID")
READ_ONLY = Error(1290, "--read-only")
STRANGE = GlobalId("d" * 16, "3" * 32).branch(B)
STRANGER = "a prepared transaction belongs to shards that this proxy does not serve"
TOLD = "finished a transaction"


@pytest.mark.parametrize(
    ("branch", "row", "refusal", "events", "sent"),
    [
        (XID, DECIDED, None, [TOLD, TOLD], [COMMIT, COMMIT]),
        (XID, UNDECIDED, None, [TOLD, TOLD], [ROLLBACK, ROLLBACK]),
        (XID, HELD, None, [], []),
        (XID, DECIDED, GONE, [TOLD], [COMMIT, COMMIT]),
        (XID, DECIDED, READ_ONLY, ["cannot finish a transaction", TOLD], [COMMIT, COMMIT]),
        (STRANGE, UNDECIDED, None, [STRANGER], []),
    ],
    ids=["committed", "rolled back", "held", "finished by another", "tried again", "strange"],
)
async def test_the_row_of_the_first_shard_says_what_becomes_of_a_branch(
    server, other_server, watch, branch, row, refusal, events, sent
):
    other_server.on("XA RECOVER", prepared(branch))
    server.on("FOR UPDATE NOWAIT", row)
    if refusal is not None:
        other_server.once("XA COMMIT", refusal)
    assert await watch.looks(3) == events
    assert finished(other_server) == sent


async def test_a_shard_that_does_not_let_us_look_is_told_of_once(other_server, watch):
    other_server.once("XA RECOVER", *[Error(1401, "XAER_RMERR: Fatal error")] * 2)
    events = await watch.looks(3)
    assert events == ["cannot look for unfinished transactions"]


async def test_a_fault_of_its_own_does_not_end_it(watch, monkeypatch):
    looked = []

    async def look():
        looked.append(1)
        if len(looked) > 1:
            raise ZeroDivisionError

    monkeypatch.setattr(watch.recovery, "look", look)
    with structlog.testing.capture_logs() as logs:
        await watch.recovery.start()
        await until(lambda: len(looked) > 3)
        await watch.recovery.stop()
    assert {entry["event"] for entry in logs} == {"recovery failed"}
