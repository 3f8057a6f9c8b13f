"""One shard's election, as one member sees it: ``handle(event, now_ns) -> actions``.

The dispatcher of a shard is who holds a named lock on its primary. The lock belongs to a connection,
and the server frees it with the connection, after it has rolled back what that had not committed.
So a write on this connection is the dispatcher's, or fails.

::

                 Connected               LockGranted             TermWritten
    FOLLOWER ──────────────► CANDIDATE ─────────────► ELECT ───────────────────► DISPATCHER
        ▲                      │    ▲                  │                               │
        │                      └────┘                  │                               │
        │                  LockNotGranted              │                               │ Resign
        │                                              │                               ▼
        └──────────── ConnectionLost, TermRefused, TurnedReadOnly, Drained ────── RESIGNING

**Proof.** An answer on the lock's connection proves that the lock was held when the server read the
question, so at least since the moment in which that was sent. The dispatcher sends messages for LEASE_NS
after that moment and not longer: the server frees the lock of a silent connection after
SILENCE_S, which is longer and counts from a later moment. That is a lease by two clocks that run
equally fast; they need not agree. A dispatcher whose proof is too old is in *jeopardy* (the word of Chubby's
sessions): it withholds messages, keeps its place, and goes on with the next answer.

**Two names.** The lock has a plain name and one with the directory's secret (`lock_connection`), and who has both has them
alone. Who has one of them waits until a dispatcher by the other one would have noticed:

* by the plain name alone (it cannot read the directory): LEASE_NS from the grant. A dispatcher without the plain name asks for
  it with each proof, so by then it has found it taken, or has no proof any more.
* by the secret alone (a connection of another account has the plain name): LEASE_NS from the reading of the secret, by which
  a dispatcher with an earlier secret, which reads it with each proof, has found it changed.

``now_ns`` is a monotonic clock's, for the wall clock may jump.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, TypeAlias, assert_never

from streamfrom.sqlparse_ext.records import record


SECOND_NS: Final = 10**9

# How often a dispatcher that has nothing else to ask pings: three are lost before LEASE_NS is over.
PING_NS: Final = SECOND_NS // 2
# A dispatcher that is cut off sends no longer than this.
LEASE_NS: Final = 2 * SECOND_NS
# `wait_timeout` of the lock's connection, in whole seconds: how long the server waits for a vanished
# dispatcher. Measured on MariaDB 10.11 and MySQL 9.7: the next one has the lock 10 ms after it.
SILENCE_S: Final = 3
# An answer that has not come until now does not come: the lock is long gone.
ANSWER_NS: Final = 5 * SECOND_NS
# How long the server lets a candidate wait for the lock before the candidate looks around again. A member that comes or
# takes over says so; this finds who went, and what no member could say.
ROUND_S: Final = 30

# How often a dispatcher looks for members that came or went, as often as others, who look once a round.
LOOK_NS: Final = ROUND_S * SECOND_NS

RETRY_FIRST_NS: Final = SECOND_NS // 20
RETRY_LAST_NS: Final = SECOND_NS


class ElectionRole(Enum):
    """What a member is to a shard.

    FOLLOWER: it has no connection for the lock.
    CANDIDATE: it waits for the lock.
    ELECT: it has the lock, and its term is not written yet.
    DISPATCHER: it has the lock and a term.
    RESIGNING: it has the lock, sends nothing more, and waits for what is under way.
    """

    FOLLOWER = auto()
    CANDIDATE = auto()
    ELECT = auto()
    DISPATCHER = auto()
    RESIGNING = auto()


class LockHold(Enum):
    """How a connection has the dispatcher's lock.

    PLAIN: by its plain name, and it knows no other.
    BOTH: by both names.
    SECRET: by the name with the secret, as a connection of another account has the plain one.
    """

    PLAIN = auto()
    BOTH = auto()
    SECRET = auto()


# Events. *connection* is the number that Connect gave; what concerns an earlier one is ignored.


@record
class Connected:
    """The connection for the lock is open and known to the shard's directory."""

    connection: int


@record
class ConnectionLost:
    """The connection for the lock could not be opened, broke, or was closed by the server."""

    connection: int
    reason: str


@record
class LockGranted:
    """The connection holds the lock."""

    connection: int
    hold: LockHold


@record
class LockNotGranted:
    """Another member held the lock for the whole round."""

    connection: int


@record
class TermWritten:
    """The term is committed. asked_ns: when the last of its questions was sent."""

    connection: int
    asked_ns: int
    term: int


@record
class TermRefused:
    """The server did not take the term, as one that is read-only."""

    connection: int
    reason: str


@record
class Answered:
    """The server has answered on the lock's connection. asked_ns: when the question was sent."""

    connection: int
    asked_ns: int


@record
class TurnedReadOnly:
    """The server refuses writes: nothing may be sent from it."""

    connection: int


@record
class Resign:
    """The member leaves the fleet."""


@record
class Drained:
    """Nothing of what was withheld is under way any more."""


@record
class Elapsed:
    """Time has passed."""


ElectionEvent: TypeAlias = (
    Connected
    | ConnectionLost
    | LockGranted
    | LockNotGranted
    | TermWritten
    | TermRefused
    | Answered
    | TurnedReadOnly
    | Resign
    | Drained
    | Elapsed
)


# Actions


@record
class Connect:
    """Open the connection for the lock; answer Connected or ConnectionLost."""

    connection: int


@record
class AcquireLock:
    """Wait for the lock; answer LockGranted, LockNotGranted or ConnectionLost."""

    connection: int
    wait_s: int


@record
class WriteTerm:
    """Write the next term if the lock is still held and the server writable; answer TermWritten, TermRefused or ConnectionLost."""

    connection: int


@record
class Ping:
    """Ask for a sign of life; answer Answered or ConnectionLost."""

    connection: int


@record
class Disconnect:
    """Close the connection, and the lock with it; no answer."""

    connection: int


@record
class LookAround:
    """Read the shard's directory; no answer."""


@record
class BeginDispatch:
    """Dispatch the shard's message tables from now on; no answer."""

    term: int


@record
class Withhold:
    """Send nothing more of the shard's message tables, at once; no answer."""

    reason: str


ElectionAction: TypeAlias = (
    Connect
    | AcquireLock
    | WriteTerm
    | Ping
    | Disconnect
    | LookAround
    | BeginDispatch
    | Withhold
)


class Election:
    """One shard's election. Everything it knows has come by `handle`.

    Attributes:
        role: what the member is to the shard.
        term: the number of its election; 0 while it is none, and where no directory can be written.
    """

    def __init__(self) -> None:
        self.role = ElectionRole.FOLLOWER
        self.term = 0
        self._connection = 0  # the number of the latest one
        self._is_open = False  # that connection is there, or being opened
        self._is_sending = False  # BeginDispatch was the last word, and not Withhold
        self._proof_ns = 0  # when the latest question was sent that has been answered
        self._given_up_ns: int | None = (
            None  # when the answer under way is not waited for any more
        )
        self._next_ns = 0  # when to connect or ping again
        self._look_ns = 0  # when a dispatcher looks around again
        self._connected_ns = 0  # when the directory had been read on the connection
        self._failures = 0
        self._is_over = False
        self._actions: list[ElectionAction] = []

    def handle(self, event: ElectionEvent, now_ns: int) -> list[ElectionAction]:
        """Return what is to be done about *event*, in this order."""
        self._actions = []
        # Before anything else: what follows may be the first that a paused process does.
        self._check(now_ns)
        match event:
            case Connected():
                if self._is_current(event.connection, ElectionRole.FOLLOWER):
                    self.role = ElectionRole.CANDIDATE
                    self._connected_ns = now_ns
                    # Without a wait, so that a member that is not alone soon knows who else there is.
                    self._acquire(0, now_ns)
            case ConnectionLost():
                if event.connection == self._connection and self._is_open:
                    self._lost(event.reason, now_ns)
            case LockGranted():
                if self._is_current(event.connection, ElectionRole.CANDIDATE):
                    self.role = ElectionRole.ELECT
                    self._failures = 0
                    self._given_up_ns = None
                    self._next_ns = self._sole_ns(event.hold, now_ns)
            case LockNotGranted():
                if self._is_current(event.connection, ElectionRole.CANDIDATE):
                    self._failures = 0
                    self._actions.append(LookAround())
                    self._acquire(ROUND_S, now_ns)
            case TermWritten():
                if self._is_current(event.connection, ElectionRole.ELECT):
                    self._elected(event, now_ns)
            case TermRefused():
                if self._is_current(event.connection, ElectionRole.ELECT):
                    self._refused(event.reason, now_ns)
            case Answered():
                if self._is_open and event.connection == self._connection:
                    self._answered(event.asked_ns, now_ns)
            case TurnedReadOnly():
                if self._is_current(event.connection, ElectionRole.DISPATCHER):
                    self._refused("the server is read-only", now_ns)
            case Resign():
                self._resign()
            case Drained():
                if self.role is ElectionRole.RESIGNING:
                    self._close()
            case Elapsed():
                pass
            case _:
                assert_never(event)
        self._act(now_ns)
        return self._actions

    def may_send(self, now_ns: int) -> bool:
        """Return whether messages may be sent at this moment."""
        return self._is_sending and now_ns < self._proof_ns + LEASE_NS

    def wake_ns(self) -> int | None:
        """Return when the next Elapsed is due, or None when only an event can change anything."""
        moments = []
        if self._is_sending:
            # Also without any event: a dispatcher that hears nothing must fall silent at this
            # moment, as another member may have the lock by then.
            moments.append(self._proof_ns + LEASE_NS)
        if self._given_up_ns is not None:
            moments.append(self._given_up_ns)
        elif self._has_next():
            moments.append(self._next_ns)
        return min(moments, default=None)

    # What time does

    def _check(self, now_ns: int) -> None:
        """Withhold messages once the proof is too old, and give up a connection without answers."""
        if self._is_sending and not self.may_send(now_ns):
            self._withhold(f"no answer of the server within {LEASE_NS // SECOND_NS} s")
        if self._given_up_ns is not None and now_ns >= self._given_up_ns:
            self._lost(f"no answer of the server within {ANSWER_NS // SECOND_NS} s", now_ns)

    def _has_next(self) -> bool:
        """Return whether something is done by itself once its moment comes."""
        match self.role:
            case ElectionRole.FOLLOWER:
                return not self._is_open and not self._is_over
            case ElectionRole.CANDIDATE:
                return False
            case _:
                return True

    def _act(self, now_ns: int) -> None:
        if self._given_up_ns is not None or not self._has_next() or now_ns < self._next_ns:
            return
        match self.role:
            case ElectionRole.FOLLOWER:
                # A new number for each attempt: an answer for an earlier one comes too late to
                # mean anything.
                self._connection += 1
                self._is_open = True
                self._given_up_ns = now_ns + ANSWER_NS
                self._actions.append(Connect(self._connection))
            case ElectionRole.ELECT:
                self._given_up_ns = now_ns + ANSWER_NS
                self._actions.append(WriteTerm(self._connection))
            case _:
                self._given_up_ns = now_ns + ANSWER_NS
                self._actions.append(Ping(self._connection))
                if self.role is ElectionRole.DISPATCHER and now_ns >= self._look_ns:
                    self._look_ns = now_ns + LOOK_NS
                    self._actions.append(LookAround())

    # From role to role

    def _is_current(self, connection: int, role: ElectionRole) -> bool:
        return self._is_open and connection == self._connection and self.role is role

    def _acquire(self, wait_s: int, now_ns: int) -> None:
        # GET_LOCK itself waits *wait_s*; only what it takes beyond that is silence.
        self._given_up_ns = now_ns + wait_s * SECOND_NS + ANSWER_NS
        self._actions.append(AcquireLock(self._connection, wait_s))

    def _sole_ns(self, hold: LockHold, now_ns: int) -> int:
        """Return from when on no other member can take itself for the dispatcher."""
        match hold:
            case LockHold.BOTH:
                return now_ns
            case LockHold.PLAIN:
                return now_ns + LEASE_NS
            case LockHold.SECRET:
                return self._connected_ns + LEASE_NS
            case _:
                assert_never(hold)

    def _elected(self, event: TermWritten, now_ns: int) -> None:
        self.role = ElectionRole.DISPATCHER
        self.term = event.term
        self._look_ns = now_ns + LOOK_NS
        self._answered(event.asked_ns, now_ns)

    def _answered(self, asked_ns: int, now_ns: int) -> None:
        # The lease counts from the question, not from its answer: between the two the server
        # may have ended the connection, and given the lock to another.
        self._proof_ns = max(self._proof_ns, asked_ns)
        if self.role not in (ElectionRole.DISPATCHER, ElectionRole.RESIGNING):
            return  # what was asked to get there is still under way
        self._given_up_ns = None
        # From the question too, so that a slow answer does not thin the proofs out.
        self._next_ns = asked_ns + PING_NS
        may_send = now_ns < self._proof_ns + LEASE_NS
        if self.role is ElectionRole.DISPATCHER and not self._is_sending and may_send:
            self._is_sending = True
            self._actions += [BeginDispatch(self.term), LookAround()]

    def _withhold(self, reason: str) -> None:
        if self._is_sending:
            self._is_sending = False
            self._actions.append(Withhold(reason))

    def _lost(self, reason: str, now_ns: int) -> None:
        """Follow again: the lock went with the connection, or may have."""
        self._withhold(reason)
        self._close()
        # Doubling. The shift is bounded because `_failures` is not, and a server may be away
        # for days.
        self._next_ns = now_ns + min(RETRY_FIRST_NS << min(self._failures, 10), RETRY_LAST_NS)
        self._failures += 1

    def _refused(self, reason: str, now_ns: int) -> None:
        """Follow again, on another connection: the address may lead to another primary by now."""
        self._lost(reason, now_ns)
        # At the longest pause at once: a failover takes seconds, and the answer was a clear
        # one.
        self._next_ns = now_ns + RETRY_LAST_NS

    def _close(self) -> None:
        if self._is_open:
            # The lock goes with its connection, so nothing is asked of a server that may not
            # answer.
            self._actions.append(Disconnect(self._connection))
        self._is_open = False
        self._given_up_ns = None
        self.role = ElectionRole.FOLLOWER
        self.term = 0

    def _resign(self) -> None:
        self._is_over = True
        if self.role is ElectionRole.DISPATCHER:
            self._withhold("the proxy is shutting down")
            self.role = ElectionRole.RESIGNING
        elif self.role is not ElectionRole.RESIGNING:
            self._close()
