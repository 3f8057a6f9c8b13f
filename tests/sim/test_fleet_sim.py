"""Elections of fleets of two to five members, on servers that die, stop, turn read-only and fail over.

One seed is one history. The promises, checked at every step of it and at its end:

* of those whose sessions are there at most one may send, whatever each of them knows of the directory: it is made, dropped and
  restored meanwhile, members lose and get the right to it, and a client holds the lock's plain name;
* whoever may send holds the lock, as the server sees it; where the server has ended its session, as KILL
  does, it may send for 2 s more but write nothing, since its connection is gone; never where the server
  has ended it for its silence;
* nobody sends from a server that is read-only for longer than its own check takes;
* the terms of one server only grow;
* a dispatcher that is cut off stops within 2 s;
* its successor is there within a second of a closed connection, and within 5 s of a vanished member;
* when the trouble is over exactly one member dispatches.
"""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass, field

import pytest

from streamfrom.engine.fleet.directory import Member
from streamfrom.engine.fleet.election import LEASE_NS, LOOK_NS
from streamfrom.engine.fleet.elector import Elector
from streamfrom.engine.fleet.lock_connection import dispatcher_lock
from tests.sim.servers import FakeSession, FakeShard, Network, nobody_watches, now_ns
from tests.sim.ways import member_of
from tests.virtual_loop import run_virtual


SEEDS = int(os.environ.get("SIM_SEEDS", "4"))
SECOND_NS = 10**9
DATABASE = "commerce"
CLOSED_S, VANISHED_S = 1.0, 5.0


@dataclass(eq=False)
class SimMember:
    """One member: its elector, and its way to the server."""

    fleet: SimFleet
    name: str
    network: Network = field(default_factory=Network)
    elector: Elector = field(init=False)
    term: int | None = None
    is_alive: bool = True

    def __post_init__(self):
        own = member_of(self.name, self.fleet.names)
        self.elector = Elector("ks/-", DATABASE, own, self, self._open, now_ns, nobody_watches)
        self.elector.start()

    async def _open(self, _on_lost):
        session = await self.fleet.server.open(self.network)
        if not self.is_alive:
            session.close()
        return session

    def dispatch(self, term):
        assert self.term is None, "told twice"
        self.term = term
        self.fleet.check()

    def withhold(self, _reason):
        assert self.term is not None, "withheld what was not sent"
        self.term = None

    def not_elected(self, _reason):
        pass

    async def drain(self):
        await asyncio.sleep(self.fleet.dice.choice([0, 0.01, 1]))

    def changed(self, differences):
        if not self.fleet.is_chaos and now_ns() > self.fleet.calm_ns + 2 * LOOK_NS:
            assert not differences.warnings


@dataclass(eq=False)
class SimFleet:
    """One history."""

    seed: int
    dice: random.Random = field(init=False)
    server: FakeShard = field(init=False)
    members: list[SimMember] = field(default_factory=list)
    names: int = 0
    is_chaos: bool = True
    calm_ns: int = 0
    outsider: FakeSession | None = None  # a client that holds the plain name of the lock
    dumped: tuple[str | None, dict[str, Member]] = (None, {})
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self):
        async with asyncio.timeout(600):
            await self._history()

    async def _history(self):
        self.dice = random.Random(self.seed)
        self.server = FakeShard()
        for _ in range(self.dice.randint(2, 5)):
            self._join()
        watcher = asyncio.create_task(self._watch())
        for _ in range(self.dice.randint(5, 15)):
            await asyncio.sleep(self.dice.choice([0.01, 0.3, 1, 2, 4, 8]))
            await self._something()
        self._calm()
        self.is_chaos, self.calm_ns = False, now_ns()
        await asyncio.sleep(3 * LOOK_NS / SECOND_NS)
        self.check()
        assert len(self._sending()) == 1, "nobody dispatches"
        await self._check_successions()
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
        if not watcher.cancelled():
            watcher.result()
        for member in list(self.members):
            await member.elector.stop()
        await asyncio.sleep(SECOND_NS / 10**9)
        assert not self.server.locks, "a lock is left behind"

    # What happens

    async def _something(self):
        member = self.dice.choice(self.members)
        match self.dice.randrange(15):
            case 0:
                member.network.is_whole.clear()
            case 1:
                member.network.is_whole.set()
            case 2:
                member.network.delay_s = self.dice.choice([0.001, 0.2, 0.9, 1.5])
            case 3:
                self.server.runs.clear()
                await asyncio.sleep(self.dice.choice([0.5, 2.5, 20]))
                self.server.runs.set()
            case 4:
                self.server.is_read_only = not self.server.is_read_only
                if self.server.is_read_only:
                    for each in self._sending():
                        each.elector.turned_read_only()
            case 5:
                self._fail_over()
            case 6:
                self._join()
            case 7 if len(self.members) > 2:
                self.members.remove(member)
                await member.elector.stop()
            case 8:
                for session in list(self.server.sessions):
                    if self.dice.random() < 0.5:
                        self.server.end(session)  # KILL
            case 9 if not self.server.is_read_only:
                self.server.drop_directory()
            case 10 if not self.server.is_read_only:
                # By hand, or from a dump: with the secret and the rows of then.
                self.dumped = self.dumped if self.dice.random() < 0.5 else (None, {})
                self.server.drop_directory()
                self.server.has_directory = True
                self.server.secret = self.dumped[0]
                self.server.rows |= self.dumped[1]
            case 11:
                self.dumped = self.server.secret, dict(self.server.rows)
            case 12:
                member.network.may_use = self.dice.random() < 0.5
                member.network.may_make = member.network.may_use and self.dice.random() < 0.5
            case 13:
                await self._meddle()
            case _:
                pass

    async def _meddle(self):
        """Let a client of another account take the plain name of the lock as soon as it is free, or leave it."""
        if self.outsider is not None and self.outsider in self.server.sessions:
            self.server.end(self.outsider)
            return
        if self.server.is_up and self.server.runs.is_set():
            self.outsider = await self.server.open(Network(account="client"))
            self.outsider.silence.cancel()
            name, wait_s = dispatcher_lock(DATABASE), self.dice.choice([0, 60])
            taking = self.server.execute(
                self.outsider, b"SELECT GET_LOCK('%b', %d)" % (name, wait_s)
            )
            task = asyncio.create_task(taking)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            await asyncio.sleep(0.001)  # it has it, or waits for it

    def _join(self):
        self.names += 1
        self.members.append(SimMember(self, f"m{self.names}"))

    def _fail_over(self):
        """Another server is the primary: the old one dies, or goes on as a replica of it."""
        old, self.server = self.server, self.server.replica()
        self.server.runs.set()
        if self.dice.random() < 0.5:
            old.crash()
        else:
            old.is_read_only = True
            for member in self.members:
                member.elector.turned_read_only()
            for session in list(old.sessions):
                old.end(session)

    def _calm(self):
        self.server.is_read_only = False
        self.server.runs.set()
        if self.outsider is not None:
            self.outsider.server.end(self.outsider)
        for member in self.members:
            member.network.is_whole.set()
            member.network.delay_s = 0.001
            member.network.may_use = member.network.may_make = True

    # What is promised

    async def _watch(self):
        while True:
            await asyncio.sleep(0.0503)
            self.check()

    def _sending(self):
        return [member for member in self.members if member.elector.may_send()]

    def check(self):
        sending = self._sending()
        for member in sending:
            assert member.term is not None
            session = member.elector.session
            assert isinstance(session, FakeSession)
            if session not in session.server.sessions:
                assert not session.fell_silent, "the server gave the lock to somebody else"
                assert now_ns() - session.ended_ns <= LEASE_NS, "killed, and goes on for long"
            else:
                assert session in session.server.locks.values()
        live = [m.elector.session for m in sending]
        servers = [each.server for each in live if each in each.server.sessions]
        assert len(servers) == len(set(map(id, servers))), "two dispatchers"
        terms = self.server.terms
        assert terms == sorted(set(terms)), "a term twice, or backwards"

    async def _check_successions(self):
        """Take dispatchers away, one in each way, and measure how long it takes."""
        while len(self.members) < 4:
            self._join()
        await asyncio.sleep(1)
        for way, limit_s in (
            ("closed", CLOSED_S),
            ("vanished", VANISHED_S),
            ("left", CLOSED_S + 1),
        ):
            (dispatcher,) = self._sending()
            began_ns = now_ns()
            self.members.remove(dispatcher)
            if way == "closed":
                dispatcher.is_alive = False
                self.server.end(dispatcher.elector.session)
            elif way == "vanished":
                dispatcher.network.is_whole.clear()
            else:
                await dispatcher.elector.stop()
            while not self._sending():
                await asyncio.sleep(0.01)
                assert not dispatcher.elector.may_send() or now_ns() - began_ns <= LEASE_NS
            took_s = (now_ns() - began_ns) / SECOND_NS
            assert took_s <= limit_s, f"{way}: the successor took {took_s} s"
            assert way == "closed" or not dispatcher.elector.may_send()
            dispatcher.network.is_whole.set()
            await dispatcher.elector.stop()
            await asyncio.sleep(5)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_promise_of_an_election_is_kept(seed):
    run_virtual(SimFleet(seed).run())
