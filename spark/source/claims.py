"""Claim messages of one shard, extend their leases, and acknowledge them.

A STREAM with an end claims them, so the proxy's dispatcher chooses who gets a message, in its order, next to other
consumers, queries and proxies. A reschedule right afterwards sets the length of the lease.
Now is always the server's clock.
"""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from streamfrom.spark.endpoint import NOW_US, Endpoint, ask, changed, marked, text_of
from streamfrom.spark.errors import JobError
from streamfrom.spark.fetching import fetch_columns
from streamfrom.spark.source.batch import told_apart


if TYPE_CHECKING:
    from streamfrom.spark.source.offsets import Claims, Id

# Ids per statement: fewer round trips, yet far below the limits of any server's optimizer.
CHUNK_IDS: Final = 10_000
# Few enough that with a vt_ack_wait of a second, the first is not due again before the last has arrived.
TAKEN_AT_ONCE: Final = 5_000
BEATS: Final = 3
"""Renewals per length of a lease: two may fail before others may claim the messages."""
_SESSION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
_DUE: Final = "time_acked IS NULL AND (time_next IS NULL OR time_next <= %s)"


class ClaimShard:
    """One shard's queue over its own connection, which threads share in turn; a broken connection is reopened."""

    def __init__(
        self, endpoint: "Endpoint", name: str, table: str, columns: "Mapping[str, str]"
    ) -> None:
        """*columns* are the table's, with their MySQL types."""
        self._endpoint = endpoint
        self.name = name
        self._table = marked(table)
        self._id_type = columns["id"]
        self._error_type = columns.get("last_error")
        self._is_whole = "int" in self._id_type
        self._connection: Any = None
        self._in_use = threading.Lock()

    def count_due(self) -> int:
        """Return how many messages are due."""
        sql = f"SELECT COUNT(*) FROM {self._table} WHERE {_DUE}"  # noqa: S608  quoted
        with self._session():
            return int(ask(self._connection, sql, [self._now_ns()])[0][0])

    def claim(self, limit: int, lease_s: float) -> "dict[int, list[Id]]":
        """Claim up to *limit* due messages for *lease_s* seconds; return their ids by epoch."""
        won: dict[int, list[Id]] = defaultdict(list)
        room = limit
        with self._session():
            while room:
                asked = min(room, TAKEN_AT_ONCE)
                taken = self._taken(asked)
                # A STREAM leases them for the table's vt_ack_wait, which may be too long or too short.
                until_ns = self._now_ns() + int(lease_s * 1e9)
                for epoch, ids in taken.items():
                    won[epoch] += self._leased(epoch, ids, until_ns)
                count = sum(map(len, taken.values()))
                room -= count
                if count < asked:
                    break
        return {epoch: ids for epoch, ids in won.items() if ids}

    def renew(self, claims: "Mapping[int, Sequence[Id]]", lease_s: float) -> None:
        """Extend the leases of the claimed messages to *lease_s* seconds from now, unless they were acknowledged or claimed since."""
        with self._session():
            until_ns = self._now_ns() + int(lease_s * 1e9)
            for epoch, ids in claims.items():
                self._reschedule(epoch, ids, until_ns)

    def ack(self, ids: "Sequence[Id]") -> None:
        """Acknowledge the messages, even if others have claimed them since, because their work is done; repeating it is harmless."""
        with self._session():
            now_ns = self._now_ns()
            for some in _chunks(ids):
                condition, values = self.where_ids(some)
                changed(
                    self._connection,
                    f"UPDATE {self._table} SET time_acked = %s, time_next = NULL"  # noqa: S608  quoted
                    f" WHERE {condition} AND time_acked IS NULL",
                    [now_ns, *values],
                )

    def put_back(
        self, epoch: int, ids: "Sequence[Id]", wait_s: float, reason: str | None
    ) -> None:
        """Make the messages due in *wait_s* seconds, unless they were claimed or acknowledged since.

        reason: why they failed, for `last_error` if the table has it; None if they were not the cause, so the delivery does not count.
        """
        with self._session():
            until_ns = self._now_ns() + int(wait_s * 1e9)
            if reason is None:
                self._reschedule(epoch, ids, until_ns, f", epoch = {epoch - 1:d}")
            elif self._error_type is None:
                self._reschedule(epoch, ids, until_ns)
            else:
                size = re.search(r"\d+", self._error_type)
                kept = reason[: int(size[0])] if size else reason
                self._reschedule(epoch, ids, until_ns, ", last_error = %s", [kept])

    def where_ids(self, ids: "Sequence[Id]") -> tuple[str, tuple[Any, ...]]:
        """Return the condition for *ids*, and its values."""
        if self._is_whole:
            # A driver takes longer to insert thousands of numbers than a server to find them.
            return f"id IN ({', '.join(map(str, map(int, ids)))})", ()
        return f"id IN ({', '.join(['%s'] * len(ids))})", tuple(map(self._sent, ids))

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection._force_close()

    @contextmanager
    def _session(self) -> "Iterator[None]":
        with self._in_use, told_apart(self._endpoint, self.name):
            if self._connection is None or not self._connection.open:
                self._connection = self._endpoint.connect(self.name, setting=_SESSION)
            try:
                yield
            except BaseException:
                # The server rolls back unfinished work, and the next call reconnects.
                self.close()
                raise

    def _now_ns(self) -> int:
        return int(ask(self._connection, f"SELECT {NOW_US}")[0][0]) * 1000

    def _taken(self, limit: int) -> "dict[int, list[Id]]":
        """Return the messages that a STREAM delivers now, by their epochs after this delivery."""
        taken: dict[int, list[Id]] = defaultdict(list)
        sql = f"STREAM id, epoch FROM {self._table} LIMIT %s WAIT 0"
        for ident, epoch in self._rows(sql, [limit]):
            taken[int(epoch or 0) + 1].append(self.told(ident))
        return taken

    def _leased(self, epoch: int, ids: "Sequence[Id]", until_ns: int) -> "list[Id]":
        """Lease the messages until *until_ns*; return those still leased by this consumer, since a short lease may have ended."""
        kept: list[Id] = []
        for some in _chunks(ids):
            if self._reschedule(epoch, some, until_ns) == len(some):
                kept += some
                continue
            condition, values = self.where_ids(some)
            told = self._rows(
                f"SELECT id, epoch FROM {self._table} WHERE {condition}"  # noqa: S608  quoted
                " AND time_acked IS NULL AND epoch = %s",
                [*values, epoch],
            )
            kept += [self.told(ident) for ident, _ in told]
        return kept

    def _reschedule(
        self,
        epoch: int,
        ids: "Sequence[Id]",
        until_ns: int,
        more: str = "",
        more_values: "Sequence[Any]" = (),
    ) -> int:
        """Make the messages due at *until_ns* unless they were claimed or acknowledged since; return how many.

        more: further assignments, with a `%s` placeholder for each of *more_values*.
        """
        count = 0
        for some in _chunks(ids):
            condition, values = self.where_ids(some)
            count += changed(
                self._connection,
                f"UPDATE {self._table} SET time_next = %s{more} WHERE {condition}"  # noqa: S608  quoted
                " AND time_acked IS NULL AND epoch = %s",
                [until_ns, *more_values, *values, epoch],
            )
        return count

    def _rows(self, sql: str, values: "Sequence[Any]") -> "Iterator[tuple[Any, Any]]":
        """Yield the rows of a SELECT of two columns, undecoded."""
        for columns in fetch_columns(self._connection, sql, values):
            yield from zip(*(column.to_pylist() for column in columns), strict=True)

    def told(self, raw: Any) -> "Id":
        """Convert an id from a server or from Spark to its form in JSON."""
        if self._is_whole:
            return int(raw)
        if "binary" in self._id_type or "blob" in self._id_type:
            return bytes(raw).hex()
        return text_of(raw)

    def _sent(self, ident: "Id") -> Any:
        if "binary" in self._id_type or "blob" in self._id_type:
            return bytes.fromhex(str(ident))
        return Decimal(ident) if self._id_type.startswith("decimal") else ident


class LeaseRenewer:
    """Extends the leases of the claims it holds, in its own thread."""

    def __init__(self, shard_of: "Callable[[str], ClaimShard]", lease_s: float) -> None:
        self._shard_of = shard_of
        self._lease_s = lease_s
        self._held: tuple[Claims, ...] = ()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._changing = threading.Lock()

    def hold(self, claims: "Claims") -> None:
        """Extend the leases of *claims* from now on."""
        with self._changing:
            self._held = (*self._held, claims)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
                self._thread.start()

    def let_go(self, claims: "Claims") -> None:
        """Stop extending the leases of *claims*; claims that are not held are ignored."""
        with self._changing:
            self._held = tuple(held for held in self._held if held != claims)

    def holds(self, claims: "Claims") -> bool:
        """Whether the leases of *claims* are extended."""
        return claims in self._held

    def stop(self) -> None:
        """Stop extending leases; the held messages come due when their leases end."""
        self._held = ()
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def renew_all(self) -> None:
        """Renew all leases once; an unreachable shard is tried again the next time."""
        for name, claims in [pair for held in self._held for pair in held.items()]:
            with suppress(JobError):
                self._shard_of(name).renew(claims, self._lease_s)

    def _run(self) -> None:
        while not self._stopped.wait(self._lease_s / BEATS):
            self.renew_all()


def _chunks(ids: "Sequence[Id]") -> "Iterator[Sequence[Id]]":
    for start in range(0, len(ids), CHUNK_IDS):
        yield ids[start : start + CHUNK_IDS]
