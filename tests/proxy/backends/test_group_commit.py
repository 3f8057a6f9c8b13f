"""Acks of several clients that are committed together: who waits, who is answered, and what becomes of each when it fails."""

import asyncio
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.group_commit import ACKS_MAX, Ack, GroupCommit, gathered
from streamfrom.proxy.errors import AckUnknown, BackendLost, PoolTimeout
from streamfrom.proxy.wire.resultset import Err
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))
LOST = BackendLost("ks", "-")
REFUSED = Err(1205, "HY000", b"Lock wait timeout exceeded")
POISON = Err(4025, "23000", b"CONSTRAINT `poison` failed")


class FakeAck:
    """An ack that remembers what it was told."""

    def __init__(self, *ids: int, acked_ns: int = 5) -> None:
        self.values: Any = ids
        self.ids = tuple(b"%d" % each for each in ids)
        self.acked_ns = acked_ns
        self.is_left = self.is_stopped = False
        self.told: list[Any] = []
        self.ran_on: list[Any] = []

    def runs_on(self, backend):
        self.ran_on.append(backend)

    def acknowledged(self):
        self.told.append("acknowledged")

    def send_alone(self):
        self.told.append("alone")

    def interrupted(self):
        self.told.append("interrupted")

    def fail(self, error):
        self.told.append(error)


class FakeBackend:
    """A connection to a server on which *free* rows are unacked and nobody's."""

    def __init__(self, server: "FakeServer") -> None:
        self.server = server
        self.in_transaction = self.awaits_kill = self.is_closed = self.has_residue = False

    def check_open(self):
        if self.server.at_send is not None:
            raise self.server.at_send

    async def query(self, sql):
        self.server.heard.append(sql)
        rows = [b"%c%b" % (len(each), each) for each in sorted(self.server.free)]
        return SimpleNamespace(columns=[b""], rows=rows)

    async def command(self, packet):
        (answer,) = await self.answers([packet])
        return answer

    async def answers(self, packets):
        heard = [packet[5:] for packet in packets]
        self.server.heard += heard
        await self.server.go_on.wait()
        if self.server.lost is not None:
            raise self.server.lost
        return [self.server.answer(sql) for sql in heard]


class FakeServer:
    """The pool and the server behind it."""

    def __init__(self, *free: int) -> None:
        self.free = {b"%d" % each for each in free}
        self.heard: list[bytes] = []
        self.at_take: Exception | None = None
        self.at_acquire: Callable[[], None] = lambda: None
        self.at_send: Exception | None = None
        self.lost: Exception | None = None
        self.refuses: dict[bytes, Err] = {}
        self.poison: set[bytes] = set()
        self.turn = b""
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.taken = self.released = self.discarded = 0

    async def acquire(self, owner, database):
        if self.at_take is not None:
            raise self.at_take
        self.taken += 1
        self.at_acquire()
        return FakeBackend(self)

    def answer(self, sql):
        error = self.refuses.get(sql.split()[0])
        affected = 0
        if error is None and (found := re.search(rb" IN \((.*?)\)", sql)):
            ids = set(found[1].split(b", "))
            if turn := re.match(rb"SELECT IF\(COUNT\(\*\) = %d, (\d+)" % len(ids), sql):
                self.turn = turn[1] if ids <= self.free else b"0"
            elif sql.endswith(b"= " + self.turn):
                affected = len(ids)
                self.free -= ids
                if not self.poison.isdisjoint(ids):
                    error = POISON
                    self.free |= ids
        return SimpleNamespace(error=error, ok=SimpleNamespace(affected_rows=affected))

    def release(self, backend):
        self.released += 1

    def discard(self, backend):
        self.discarded += 1


async def until_quiet():
    for _ in range(20):
        await asyncio.sleep(0)


def group_on(server, committed=lambda acks: None):
    pool: Any = server
    owner: Any = SimpleNamespace()
    return GroupCommit(pool, owner, "db", committed)


def joins(group, ack):
    """Have *ack* come; return whether it goes with others."""
    if not group.has_others():
        return False
    group.join(TABLE, ack)
    return True


async def together(server, *acks, committed=lambda acks: None):
    """Have *acks* come behind another one, which goes by itself."""
    group = group_on(server, committed)
    assert not joins(group, FakeAck(1000))
    assert all(joins(group, ack) for ack in acks)
    await until_quiet()


def test_a_transaction_has_so_many_acks_and_the_others_keep_their_order():
    acks = [FakeAck(each) for each in range(ACKS_MAX + 2)]
    assert gathered(acks) == (acks[:ACKS_MAX], acks[ACKS_MAX:])


async def test_an_ack_that_comes_alone_and_the_second_of_two_wait_for_nobody():
    server, second = FakeServer(1), FakeAck(1)
    group = group_on(server)
    for _ in range(3):
        assert not joins(group, FakeAck(1))
        await until_quiet()
    await together(server, second)
    assert (second.told, server.heard) == (["alone"], [])


async def test_acks_that_come_together_are_one_update_with_the_time_of_each():
    server = FakeServer(1, 2, 3)
    committed: list[Ack] = []
    acks = [FakeAck(1, acked_ns=7), FakeAck(2, 3, acked_ns=8)]

    def note(won):
        committed.extend(won)
        assert not any(ack.told for ack in acks), "clients hear of it last"

    await together(server, *acks, committed=note)
    assert [ack.told for ack in acks] == [["acknowledged"]] * 2
    assert committed == acks
    lock, update, commit = server.heard
    assert lock.endswith(b"IN (1, 2, 3) AND time_acked IS NULL FOR UPDATE SKIP LOCKED")
    assert b"CASE `id` WHEN 1 THEN 7 WHEN 2 THEN 8 WHEN 3 THEN 8 ELSE 8 END" in update
    assert commit == b"COMMIT"
    assert (server.taken, server.released, server.discarded) == (1, 1, 0)


async def test_what_comes_while_acks_are_written_goes_next_on_the_same_connection():
    server = FakeServer(*range(9))
    group = group_on(server)
    server.go_on.clear()
    joins(group, FakeAck(1000))
    first, second = [FakeAck(1), FakeAck(2)], [FakeAck(3), FakeAck(4), FakeAck(3)]
    for ack in first:
        joins(group, ack)
    await until_quiet()
    assert all(joins(group, ack) for ack in second)
    server.go_on.set()
    await until_quiet()
    assert [ack.told for ack in first + second[:2]] == [["acknowledged"]] * 4
    assert second[2].told == ["alone"], "another one has acknowledged 3"
    assert (server.taken, server.released) == (1, 1)
    assert not joins(group, FakeAck(5)), "who comes now is alone again"


async def test_whoever_does_not_have_all_its_messages_free_goes_by_itself():
    server = FakeServer(1, 2)
    committed: list[Ack] = []
    acks = [FakeAck(1), FakeAck(2, 9), FakeAck(8)]
    await together(server, *acks, committed=committed.extend)
    assert [ack.told for ack in acks] == [["acknowledged"], ["alone"], ["alone"]]
    assert committed == acks[:1]
    assert server.free == {b"2"}, "of the second nothing is written here"


@pytest.mark.parametrize("fault", ["at_take", "at_send", b"SELECT", b"UPDATE", b"COMMIT"])
async def test_what_fails_before_anything_is_committed_is_sent_again_one_by_one(fault):
    server, acks = FakeServer(1, 2), [FakeAck(1), FakeAck(2)]
    if isinstance(fault, bytes):
        server.refuses[fault] = REFUSED
    else:
        setattr(server, fault, LOST)
    await together(server, *acks)
    assert [ack.told for ack in acks] == [["alone"]] * 2
    kept = fault in (b"SELECT", b"UPDATE", "at_send")
    assert server.discarded == (0 if kept else server.taken), "locks go with it"


@pytest.mark.parametrize("poison", [{4}, {1, 7}, {1, 2, 3, 4, 5, 6, 7, 8}])
async def test_an_ack_whose_row_the_server_refuses_goes_alone_and_no_other(poison):
    server, acks = FakeServer(*range(1, 9)), [FakeAck(each) for each in range(1, 9)]
    server.poison = {b"%d" % each for each in poison}
    committed: list[Ack] = []
    await together(server, *acks, committed=committed.extend)
    told = {ack.ids[0]: ack.told for ack in acks}
    assert told == {
        b"%d" % each: ["alone" if each in poison else "acknowledged"] for each in range(1, 9)
    }
    assert {ack.ids[0] for ack in committed} == told.keys() - server.poison
    assert (server.taken, server.discarded) == (1, 0)


@pytest.mark.parametrize(
    ("step", "error", "told", "words"),
    [
        ("lost", LOST, AckUnknown, "whether it took effect is unknown"),
        ("at_take", PoolTimeout("ks", "-", 20), PoolTimeout, "nothing was executed"),
    ],
)
async def test_a_connection_that_breaks_in_the_commit_or_is_not_there_is_told_to_all(
    step, error, told, words
):
    server, acks = FakeServer(1, 2), [FakeAck(1), FakeAck(9)]
    setattr(server, step, error)
    await together(server, *acks)
    for ack in acks:
        (found,) = ack.told
        assert isinstance(found, told)
        assert words in str(found)


async def test_a_fault_of_the_proxy_leaves_no_client_waiting():
    server, acks = FakeServer(1, 2), [FakeAck(1), FakeAck(2)]
    fault = RuntimeError("who knows")

    def committed(_):
        raise fault

    await together(server, *acks, committed=committed)
    assert [ack.told for ack in acks] == [[fault]] * 2


async def test_a_client_that_leaves_is_told_nothing_and_its_ack_is_committed():
    server, acks = FakeServer(1, 2), [FakeAck(1), FakeAck(2)]

    def committed(won):
        acks[0].is_left = True
        assert won == acks

    await together(server, *acks, committed=committed)
    assert [ack.told for ack in acks] == [[], ["acknowledged"]]


async def test_an_ack_that_is_killed_before_there_is_a_connection_is_not_written():
    server, killed, other = FakeServer(1, 2), FakeAck(1), FakeAck(2)
    server.at_acquire = lambda: setattr(killed, "is_left", True)
    await together(server, killed, other)
    assert (killed.told, other.told) == ([], ["acknowledged"])
    assert all(sql == b"COMMIT" or b"IN (2)" in sql for sql in server.heard)


async def test_a_connection_that_is_being_killed_is_used_no_more():
    server, acks = FakeServer(1, 2), [FakeAck(1), FakeAck(2)]

    def killed(_):
        acks[0].ran_on[0].awaits_kill = True

    await together(server, *acks, committed=killed)
    assert [ack.told for ack in acks] == [["acknowledged"]] * 2
    assert acks[0].ran_on[1] is None
    assert (server.discarded, server.released) == (1, 0)
