"""The statements on the connection that holds a shard's lock, and those that read the directory.

They are conversations (`engine.messaging.store.conversation`). A statement that the server
refuses is thrown into the conversation as `ServerRefused`; one that gets no answer ends it.

Every lock's name begins with the database, because locks belong to the server: two shards may be two
databases of one server. MySQL takes 64 characters and compares them without case, so the
database is in the name as a hash.

The dispatcher's lock has two names. Anybody can compute the *plain* one, even a client. The other one contains a *secret*
from the directory. A member that cannot read the directory takes only the plain name. One that can takes both, and needs the plain
one only if another connection of the shards' account has it: a client's own account that holds it keeps
no member from dispatching. So of two connections of the shards' account one dispatches, whatever each knows of the directory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.engine.fleet.directory import COLUMNS, CREATE, DirectoryRead, Member, member_of
from streamfrom.engine.fleet.election import SILENCE_S, LockHold
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreQuery
from streamfrom.engine.messaging.table.message_ids import MEMBERS_MAX
from streamfrom.sqlparse_ext.text.identifiers import literal


if TYPE_CHECKING:
    from streamfrom.engine.messaging.store.conversation import Conversation, StoreAnswer


# A dispatcher that vanished in the middle of an answer blocks the server's write: without
# net_write_timeout the lock came free after more than 45 s, with it after 3 (MariaDB 10.11, MySQL 9.7).
# No statement on this connection waits for another client's lock longer than a ping may be late.
SETTINGS: Final = (
    b"SET NAMES utf8mb4",
    # A claim locks the rows that it takes, and no gap next to them.
    b"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    b"SET SESSION autocommit = 1, SESSION wait_timeout = %d, SESSION net_read_timeout = %d, SESSION net_write_timeout = %d,"
    b" SESSION lock_wait_timeout = 1, SESSION innodb_lock_wait_timeout = 1"
    % (SILENCE_S, SILENCE_S, SILENCE_S),
)

DUPLICATE_KEY: Final = 1062
NO_SUCH_TABLE: Final = 1146
# The database may be missing, or only the table.
NO_DIRECTORY: Final = frozenset({1049, NO_SUCH_TABLE})
INTERRUPTED: Final = 1317
# Privileges on the database, the table, a column, or for a command.
DENIED: Final = frozenset({1044, 1142, 1143, 1227})
# --read-only, and read-only mode as a whole.
READ_ONLY: Final = frozenset({1290, 1836})
# How long a member that has the name with the secret waits for the plain one, before its round is over.
PLAIN_WAIT_S: Final = 3
READ_ONLY_SAID: Final = "the server is read-only"


@dataclass(frozen=True, slots=True)
class Joined:
    """The result of registering a connection.

    secret: of the lock's name; None if the directory is not available.
    denied: why the member has no row; None if it has one.
    """

    secret: str | None
    denied: str | None


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of members.

    taken: those in rows of the directory, with the members' ids.
    locked: those whose lock is held. The directory may have been dropped a moment ago; but a client may hold such a lock, too.
    """

    taken: Mapping[int, str]
    locked: frozenset[int]


class MemberExists(Exception):
    """Another connection of this server has the member's id: two shards are one database."""


class NotWritable(Exception):
    """The server is read-only, so no member dispatches from it."""


class LockLost(Exception):
    """Another connection may have the dispatcher's lock, or the directory has another secret."""


class NumberTaken(Exception):
    """Another member has the number."""


def dispatcher_lock(database: str, secret: str | None = None) -> bytes:
    """Return the name of the lock that the dispatcher of *database* holds: the plain one, or that with a *secret*."""
    # A lock's name has 64 characters at most, and a database's may have as many. Names of locks
    # are the whole server's, so that of the database must be in it.
    if secret is None:
        return b"streamfrom." + _digest(database, 16)
    return b"streamfrom." + _digest(f"{secret} {database}", 32)


def _digest(text: str, digits: int) -> bytes:
    return hashlib.sha256(text.encode()).hexdigest()[:digits].encode()


def member_lock(database: str, member: bytes) -> bytes:
    """Return the name of the lock by which a member shows that it is connected."""
    return dispatcher_lock(database) + b"." + member


def number_lock(database: str, number: int) -> bytes:
    """Return the name of the lock by which a connected member keeps its number, even if the directory is dropped."""
    return dispatcher_lock(database) + b"#%d" % number


def settings() -> Conversation[None]:
    """Set up a connection."""
    for sql in SETTINGS:
        yield StoreQuery(sql)


def join(database: str, member: Member, new_secret: str) -> Conversation[Joined]:
    """Register the connection, and `enroll`.

    Raises:
        MemberExists: the member has another connection to this database.
        ServerRefused: the server has trouble that no missing privilege explains.
    """
    yield from settings()
    # This lock shows that the member is alive: the server frees it with the connection.
    if not (yield from _take(member_lock(database, member.id.encode()), 0)):
        raise MemberExists
    # If another member has it, the row of one of them is refused: `publish`.
    yield from _take(number_lock(database, member.id_prefix), 0)
    return (yield from enroll(database, member, new_secret))


def enroll(database: str, member: Member, new_secret: str) -> Conversation[Joined]:
    """Write the member's row; make the directory, with *new_secret*, if there is none.

    Raises:
        ServerRefused: the server has trouble that no missing privilege explains.
    """
    if (yield from _is_read_only()):
        return Joined((yield from read_secret(database)), READ_ONLY_SAID)
    denied: str | None
    try:
        denied = yield from publish(database, member)
    except NumberTaken as taken:
        # For example by a row from a dump, which the dispatcher deletes eventually.
        denied = str(taken)
    except ServerRefused as refused:
        if refused.code not in READ_ONLY:
            raise
        denied = READ_ONLY_SAID
    secret = yield from read_secret(database)
    if secret is None and denied is None:
        # Of two members that write at the same time the first one wins.
        write = StoreQuery(
            b"INSERT IGNORE INTO streamfrom.locks (database_name, secret, term) VALUES (%b, %b, 0)"
            % (_name(database), literal(new_secret.encode()))
        )
        try:
            yield from _in_directory(write)
        except ServerRefused as refused:
            if refused.code not in DENIED:
                raise
            return Joined(None, refused.message)
        secret = yield from read_secret(database)
    return Joined(secret, denied)


def _in_directory(write: StoreQuery) -> Conversation[None]:
    """Write into the directory, and create it first if it, or a part of it, is missing."""
    try:
        yield write
    except ServerRefused as refused:
        if refused.code not in NO_DIRECTORY:
            raise
        for sql in CREATE:
            yield StoreQuery(sql.encode())
        yield write


def _name(database: str) -> bytes:
    return literal(database.encode())


def _is_read_only() -> Conversation[bool]:
    """Return whether the server is read-only, for an account that could still write, and make a replica differ."""
    answer = yield StoreQuery(b"SELECT @@global.read_only OR @@global.innodb_read_only", 1)
    return answer.rows[0][0] != (b"0",)


def read_secret(database: str) -> Conversation[str | None]:
    """Return the secret of a database; None if the directory has none, or cannot be read."""
    sql = b"SELECT secret FROM streamfrom.locks WHERE database_name = %b" % _name(database)
    answer = yield from _if_readable(StoreQuery(sql, 1))
    return _text(answer.rows[0][0][0]) if answer is not None and answer.rows else None


def _if_readable(query: StoreQuery) -> Conversation[StoreAnswer | None]:
    """Return the answer; None if there is no directory, or this account may not read it."""
    try:
        return (yield query)
    except ServerRefused as refused:
        if refused.code not in DENIED | NO_DIRECTORY:
            raise
        return None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("ascii", "replace")


def publish(database: str, member: Member) -> Conversation[str | None]:
    """Write the member's row, creating the directory before; return why that is denied.

    Raises:
        NumberTaken: the row of another member has its number.
    """
    try:
        yield from _in_directory(_insert(database, member))
    except ServerRefused as refused:
        if refused.code in DENIED:
            return refused.message
        if refused.code != DUPLICATE_KEY:
            raise
        answer = yield StoreQuery(
            b"SELECT member FROM streamfrom.members WHERE database_name = %b AND id_prefix = %d"
            % (_name(database), member.id_prefix),
            1,
        )
        if answer.rows and answer.rows[0][0] != (member.id.encode(),):
            (other,) = answer.rows[0][0]
            raise NumberTaken(
                f"its number {member.id_prefix} is that of member {_text(other)}"
            ) from None
        # It is the member's own: of its start, or of an earlier connection.
        yield _update(database, member)
    return None


def numbers(database: str) -> Conversation[Numbers]:
    """Return the numbers that members have, or seem to have."""
    locks = (number_lock(database, number) for number in range(1, MEMBERS_MAX + 1))
    answer = yield StoreQuery(
        b"SELECT " + b", ".join(b"IS_USED_LOCK('%b')" % lock for lock in locks), MEMBERS_MAX
    )
    ((holders, _),) = answer.rows
    locked = frozenset(number for number, holder in enumerate(holders, 1) if holder is not None)
    sql = b"SELECT id_prefix, member FROM streamfrom.members WHERE database_name = %b"
    found = yield from _if_readable(StoreQuery(sql % _name(database), 2))
    taken = {
        int(value): member.decode("ascii", "replace")
        for (value, member), _ in (() if found is None else found.rows)
        if value is not None and member is not None
    }
    return Numbers(taken, locked)


def _insert(database: str, member: Member) -> StoreQuery:
    return StoreQuery(
        b"INSERT INTO streamfrom.members (database_name, %b) VALUES (%b, %b)"
        % (
            b", ".join(COLUMNS),
            _name(database),
            b", ".join(literal(value) for value in member.values),
        )
    )


def _update(database: str, member: Member) -> StoreQuery:
    values = zip(COLUMNS, member.values, strict=True)
    return StoreQuery(
        b"UPDATE streamfrom.members SET %b WHERE database_name = %b AND member = %b"
        % (
            b", ".join(b"%b = %b" % (column, literal(value)) for column, value in values),
            _name(database),
            literal(member.id.encode()),
        )
    )


def acquire(database: str, secret: str | None, wait_s: int) -> Conversation[LockHold | None]:
    """Wait for the dispatcher's lock; return how the connection has it now, None if it does not."""
    if not (yield from _take(dispatcher_lock(database, secret), wait_s)):
        return None
    if secret is None:
        return LockHold.PLAIN
    while (hold := (yield from _hold(database))) is None:
        # A proxy without the directory dispatches. The server gives its lock up as soon as it does.
        if not wait_s or not (yield from _take(dispatcher_lock(database), PLAIN_WAIT_S)):
            return None
    return hold


def keep(database: str, secret: str | None) -> Conversation[LockHold]:
    """Return how a connection that has acquired the dispatcher's lock has it now.

    Raises:
        LockLost: another connection of the account has the plain name, or the directory has another secret.
    """
    if (yield from read_secret(database)) != secret:
        raise LockLost("the directory has another secret for the lock than before")
    if secret is None:
        return LockHold.PLAIN
    hold = yield from _hold(database)
    if hold is None:
        raise LockLost("a proxy that does not know the directory has the lock")
    return hold


def _hold(database: str) -> Conversation[LockHold | None]:
    """Take the plain name as well; return None if another connection of the account has it."""
    plain = dispatcher_lock(database)
    while not (yield from _take(plain, 0)):
        holder, is_ours = yield from _holder(plain)
        if is_ours:
            return None
        if holder is not None:
            return LockHold.SECRET
    return LockHold.BOTH


def _holder(lock: bytes) -> Conversation[tuple[int | None, bool]]:
    """Return the connection that has a lock, and whether it is one of this account: every account sees those."""
    answer = yield StoreQuery(
        b"SELECT k.holder, EXISTS (SELECT 1 FROM information_schema.processlist AS p WHERE p.id = k.holder"
        b" AND p.user = SUBSTRING_INDEX(USER(), '@', 1)) FROM (SELECT IS_USED_LOCK(%b) AS holder) AS k"
        % literal(lock),
        2,
    )
    holder, is_ours = answer.rows[0][0]
    return _number(holder), is_ours == b"1"


def _take(lock: bytes, wait_s: int) -> Conversation[bool]:
    answer = yield StoreQuery(b"SELECT GET_LOCK(%b, %d)" % (literal(lock), wait_s), 1)
    (value,) = answer.rows[0][0]
    if value is None:
        raise ServerRefused(INTERRUPTED, "the wait for the lock was interrupted")
    return value == b"1"


def write_term(database: str) -> Conversation[int]:
    """Write the next term and return it; 0 if none can be written.

    Only the holder of the lock calls this, so no other term is written meanwhile.

    Raises:
        NotWritable: the server is read-only.
        ServerRefused: the server has trouble that no missing privilege explains.
    """
    if (yield from _is_read_only()):
        raise NotWritable(READ_ONLY_SAID)
    try:
        answer = yield StoreQuery(
            b"SELECT term FROM streamfrom.locks WHERE database_name = %b" % _name(database),
            1,
        )
        if not answer.rows:
            return 0
        term = int(answer.rows[0][0][0] or 0) + 1
        yield StoreQuery(
            b"UPDATE streamfrom.locks SET term = %d WHERE database_name = %b"
            % (term, _name(database))
        )
    except ServerRefused as refused:
        if refused.code in READ_ONLY:
            raise NotWritable(READ_ONLY_SAID) from refused
        if refused.code in DENIED | NO_DIRECTORY:
            return 0
        raise
    return term


def read_directory(
    database: str, own: Member, secret: str | None
) -> Conversation[DirectoryRead]:
    """Read which members are connected and which one dispatches.

    The server derives this from its locks: no row has to be kept fresh for it, and no
    clock is involved. Any connection may run it. *secret*: the one that the reader's own election uses.
    """
    plain = dispatcher_lock(database)
    by_secret, mine = dispatcher_lock(database, secret), member_lock(database, own.id.encode())
    locks = b"IS_USED_LOCK(%b) AS plain, IS_USED_LOCK(%b) AS holder, IS_USED_LOCK(%b) AS own"
    locks %= tuple(map(literal, (plain, by_secret, mine)))
    answer = yield from _if_readable(
        StoreQuery(
            b"SELECT k.plain, k.holder, k.own,"
            b" (SELECT secret FROM streamfrom.locks WHERE database_name = %b),"
            b" IS_USED_LOCK(CONCAT(%b, IFNULL(m.member, ''))), m.%b"
            b" FROM (SELECT %b) AS k LEFT JOIN streamfrom.members AS m ON m.database_name = %b"
            % (
                _name(database),
                literal(member_lock(database, b"")),
                b", m.".join(COLUMNS),
                locks,
                _name(database),
            ),
            5 + len(COLUMNS),
        )
    )
    if answer is None:
        answer = yield StoreQuery(b"SELECT %b, NULL, NULL" % locks, 5)
    entries = tuple(
        (_number(connection), member_of(fields))
        for (_, _, _, _, connection, *fields), _ in answer.rows
        if fields and fields[0] is not None
    )
    has_plain, has_secret, has_own, its_secret, *_ = answer.rows[0][0]
    holder = _number(has_plain)
    outsider = None
    if holder is not None and holder not in {_number(has_own), *(one for one, _ in entries)}:
        now, is_ours = yield from _holder(plain)
        if now == holder and not is_ours:
            outsider = holder
    if holder is None or (outsider is not None and secret is not None):
        # A member that waits for the plain name holds the other one, and does not dispatch; one that need not wait does.
        holder = _number(has_secret)
    return DirectoryRead(holder, _number(has_own), entries, _text(its_secret), outsider)


def forget(database: str, members: tuple[str, ...]) -> Conversation[None]:
    """Delete the rows of members that have gone."""
    ids = b", ".join(literal(member.encode()) for member in members)
    yield StoreQuery(
        b"DELETE FROM streamfrom.members WHERE database_name = %b AND member IN (%b)"
        % (_name(database), ids)
    )


def _number(value: bytes | None) -> int | None:
    return None if value is None else int(value)
