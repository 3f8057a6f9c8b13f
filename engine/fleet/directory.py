"""The members of a fleet, as the directory lists them: the database `streamfrom` on each of their servers.

A row of its table `members` has a member's address and certificate. It does not show whether the member is connected or dispatches:
that follows from the locks on the server, read in the same statement (`lock_connection`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from typing import Final


SCHEMA: Final = "streamfrom"
COLUMNS: Final = (
    b"member",
    b"fleet",
    b"address",
    b"certificate",
    b"id_prefix",
    b"version",
    b"configuration",
)
# A server may hold several shards, so each row names its database.
_OF_DATABASE: Final = (
    "database_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
)
# The statements with which a member that may create the directory creates it, in this order.
CREATE: Final = (
    "CREATE DATABASE IF NOT EXISTS streamfrom",
    f"CREATE TABLE IF NOT EXISTS streamfrom.members ({_OF_DATABASE},"
    " member VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
    " fleet VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,"
    " address VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
    " certificate TEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
    " id_prefix INT UNSIGNED NOT NULL,"
    " version VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
    " configuration VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
    " PRIMARY KEY (database_name, member), UNIQUE KEY (database_name, id_prefix)) ENGINE=InnoDB",
    f"CREATE TABLE IF NOT EXISTS streamfrom.locks ({_OF_DATABASE} PRIMARY KEY,"
    " secret CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, term BIGINT UNSIGNED NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS streamfrom.decisions (id VARBINARY(64) NOT NULL PRIMARY KEY,"
    " branches MEDIUMBLOB NOT NULL, time_created BIGINT NOT NULL) ENGINE=InnoDB",
)
GRANT: Final = "GRANT SELECT, INSERT, UPDATE, DELETE ON streamfrom.* TO {user}"

# A member whose connection broke comes back within seconds; its certificate is trusted meanwhile.
FORGET_NS: Final = 60 * 10**9
# Members reload a configuration one after the other, which is no difference to report.
DIFFER_NS: Final = 10 * 10**9


@dataclass(frozen=True, slots=True)
class Member:
    """One process of a fleet, as it publishes itself.

    id: its name, drawn at its start: 16 hexadecimal digits.
    fleet: the name of its fleet.
    address: host:port of its service; empty for none.
    certificate: the PEM that identifies it.
    id_prefix: the upper bits of its clients' connection ids.
    version: the version of the product.
    configuration: a hash of its keyspaces, shards and vschemas.
    """

    id: str
    fleet: str
    address: str
    certificate: str
    id_prefix: int
    version: str
    configuration: str

    @property
    def values(self) -> tuple[bytes, ...]:
        """Return the row's values without the database."""
        return tuple(str(value).encode() for value in astuple(self))


def member_of(fields: Sequence[bytes | None]) -> Member | str:
    """Return the member of a row, in the order of COLUMNS, or the row's fault."""
    texts = [(value or b"").decode("utf-8", "replace") for value in fields]
    name, fleet, address, certificate, prefix, version, configuration = texts
    if not prefix.isdigit():
        return f"the row of member {name!r} in streamfrom.members was changed by hand"
    return Member(name, fleet, address, certificate, int(prefix), version, configuration)


@dataclass(frozen=True, slots=True)
class DirectoryRead:
    """One answer about a shard.

    holder: the connection that holds the dispatcher's lock; None if there is none.
    own: the reader's own connection; None while it has none.
    entries: every row, with the member's connection if it has one.
    secret: the directory's part of the lock's name; None if the directory does not exist, or may not be read.
    outsider: the connection of another account that holds the plain name of the lock.
    """

    holder: int | None
    own: int | None
    entries: tuple[tuple[int | None, Member | str], ...]
    secret: str | None = None
    outsider: int | None = None

    def has(self, member: Member) -> bool:
        """Return whether there is a row of *member*, as it is now."""
        return any(entry == member for _, entry in self.entries)


@dataclass(frozen=True, slots=True)
class Stranger:
    """A connection that is no member of this fleet holds the dispatcher's lock.

    fleet: the name of its fleet; None if it has none.
    """

    connection: int
    fleet: str | None

    def __str__(self) -> str:
        who = f"connection {self.connection} of the server, which is no member of a fleet"
        if self.fleet is not None:
            who = f"a member of fleet {self.fleet!r}"
        return f"its messages are dispatched by {who}"


@dataclass(frozen=True, slots=True)
class MemberDifferences:
    """The changes between two readings, and reports about them.

    joined: members of this fleet that came.
    dispatcher: the member that dispatches now; None if none does.
    has_moved: that is another member than before.
    forgotten: members that have been gone for FORGET_NS, whose rows a dispatcher deletes.
    warnings: sentences that have not been reported yet.
    """

    joined: tuple[Member, ...]
    dispatcher: Member | Stranger | None
    has_moved: bool
    forgotten: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(slots=True)
class Directory:
    """The members as one of them has read them from one shard.

    own: the reader.
    members: those of its fleet, by id, including those that are gone but not forgotten.
    dispatcher: the member that dispatches the shard.
    """

    own: Member
    members: dict[str, Member] = field(default_factory=dict)
    dispatcher: Member | Stranger | None = None
    _connected: set[str] = field(default_factory=set)
    # Since when a row's member is gone.
    _gone_ns: dict[str, int] = field(default_factory=dict)
    _warned: frozenset[str] = frozenset()
    # Since when connected members differ.
    _differing_ns: dict[str, int] = field(default_factory=dict)

    def take(self, read: DirectoryRead, now_ns: int) -> MemberDifferences:
        """Process an answer and return the changes. *now_ns* is a monotonic clock's."""
        before, connected_before = self.dispatcher, self._connected
        rows: dict[str, tuple[int | None, Member]] = {}
        warnings: list[str] = []
        for connection, entry in read.entries:
            if isinstance(entry, str):
                warnings.append(entry)
            else:
                rows[entry.id] = connection, entry
        # Its row may be missing: it may not write one, or another client has deleted it.
        rows[self.own.id] = read.own, self.own
        self.dispatcher = self._holder(read.holder, rows)
        self._gone_ns = {
            name: self._gone_ns.get(name, now_ns)
            for name, (connection, _) in rows.items()
            if connection is None
        }
        ours = {
            name: (connection, member)
            for name, (connection, member) in rows.items()
            if member.fleet == self.own.fleet
        }
        self.members = {name: member for name, (_, member) in ours.items()}
        self._connected = {
            name for name, (connection, _) in ours.items() if connection is not None
        }
        if isinstance(self.dispatcher, Stranger):
            warnings.append(str(self.dispatcher))
            if read.secret is None:
                needs = "; ".join((*CREATE, GRANT.format(user="the shards' account")))
                warnings.append(
                    f"members find each other by the database streamfrom, which it needs: {needs}"
                )
        if read.outsider is not None:
            warnings.append(
                f"connection {read.outsider} of another account holds the lock's plain name: if it is a proxy's, give"
                " both proxies one account at the shards; otherwise end it"
            )
        self._differing_ns = {
            text: self._differing_ns.get(text, now_ns)
            for name in sorted(self._connected - {self.own.id})
            for text in _compared(self.own, self.members[name])
        }
        warnings += [
            t for t, since_ns in self._differing_ns.items() if now_ns >= since_ns + DIFFER_NS
        ]
        # Reported once, and again only after it was over.
        said, self._warned = self._warned, frozenset(warnings)
        return MemberDifferences(
            joined=tuple(
                self.members[name] for name in sorted(self._connected - connected_before)
            ),
            dispatcher=self.dispatcher,
            has_moved=_identity(before) != _identity(self.dispatcher),
            forgotten=tuple(
                name
                for name, since_ns in self._gone_ns.items()
                if now_ns >= since_ns + FORGET_NS
            ),
            warnings=tuple(text for text in warnings if text not in said),
        )

    def present(self) -> list[Member]:
        """Return the other members of this fleet that are connected."""
        return [self.members[name] for name in sorted(self._connected) if name != self.own.id]

    def trusts(self, certificate: str) -> Member | None:
        """Return the member of this fleet that *certificate* identifies; None for no member."""
        return next((m for m in self.members.values() if m.certificate == certificate), None)

    def _holder(
        self, holder: int | None, rows: dict[str, tuple[int | None, Member]]
    ) -> Member | Stranger | None:
        if holder is None:
            return None
        for connection, member in rows.values():
            if connection == holder:
                if member.fleet == self.own.fleet:
                    return member
                return Stranger(holder, member.fleet)
        # It has no row, and yet holds the lock: a proxy that may not write the table, or no proxy
        # at all.
        return Stranger(holder, None)


def _identity(dispatcher: Member | Stranger | None) -> str | int | None:
    if isinstance(dispatcher, Stranger):
        return dispatcher.connection
    return None if dispatcher is None else dispatcher.id


def _compared(own: Member, other: Member) -> list[str]:
    """Return the differences to another member that should not exist."""
    found = []
    if other.version != own.version:
        found.append(
            f"member {other.id} runs version {other.version}, and this one {own.version}"
        )
    if other.configuration != own.configuration:
        found.append(
            f"member {other.id} has other keyspaces or vschemas in its configuration than this one"
        )
    return found
