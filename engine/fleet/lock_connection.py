"""What is said on the connection that holds a shard's lock, and what the directory is read by.

The statements stand here as conversations (`engine.messaging.conversation`). A statement that the server
refuses is thrown into the conversation as `ServerRefused`; one that nobody answers ends it.

Every lock's name begins with the database, for locks belong to the server: two shards may be two
databases of one server. MySQL takes 64 characters and compares them without case, so the
database stands there as a hash.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.engine.fleet.directory import (
    COLUMNS,
    CREATE_TABLE,
    TABLE,
    DirectoryRead,
    Member,
    member_of,
)
from streamfrom.engine.fleet.election import SILENCE_S
from streamfrom.engine.messaging.conversation import ServerRefused, StoreQuery
from streamfrom.sqlparse_ext.text.identifiers import literal


if TYPE_CHECKING:
    from streamfrom.engine.messaging.conversation import Conversation


# A dispatcher that vanished in the middle of an answer blocks the server's write: without
# net_write_timeout the lock came free after more than 45 s, with it after 3 (MariaDB 10.11, MySQL 9.7).
# No statement on this connection waits for somebody's lock longer than a ping may be late.
SETTINGS: Final = (
    b"SET NAMES utf8mb4",
    # A claim locks the rows that it takes, and no gap beside them.
    b"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    b"SET SESSION autocommit = 1, SESSION wait_timeout = %d, SESSION net_read_timeout = %d, SESSION net_write_timeout = %d,"
    b" SESSION lock_wait_timeout = 1, SESSION innodb_lock_wait_timeout = 1"
    % (SILENCE_S, SILENCE_S, SILENCE_S),
)

DUPLICATE_KEY: Final = 1062
NO_SUCH_TABLE: Final = 1146
INTERRUPTED: Final = 1317
# Rights: of the database, of the table, of a column, of a command.
DENIED: Final = frozenset({1044, 1142, 1143, 1227})
# --read-only, and read-only mode as a whole.
READ_ONLY: Final = frozenset({1290, 1836})
_READ_ONLY_SAID: Final = "the server is read-only"


# The questions as values, for a server in memory.


@dataclass(frozen=True, slots=True)
class TakeLock:
    """Take a named lock, waiting *wait_s* seconds at most."""

    name: bytes
    wait_s: int


@dataclass(frozen=True, slots=True)
class InsertMember:
    """Insert the row of a member."""

    member: Member


@dataclass(frozen=True, slots=True)
class AskReadOnly:
    """Ask whether the server is read-only."""


@dataclass(frozen=True, slots=True)
class AskTerm:
    """Ask for the highest term."""


@dataclass(frozen=True, slots=True)
class SetTerm:
    """Write the term into the row of a member."""

    member: str
    term: int


@dataclass(frozen=True, slots=True)
class AskMembers:
    """Ask for all rows, and for the connections that hold the locks.

    lock: the dispatcher's lock; a member's is this, a dot and its id.
    has_rows: ask for the rows as well.
    """

    lock: bytes
    own: str
    has_rows: bool


@dataclass(frozen=True, slots=True)
class ForgetMembers:
    """Delete the rows of members."""

    members: tuple[str, ...]


class MemberExists(Exception):
    """Another connection of this server goes by the member's id: two shards are one database."""


class NotWritable(Exception):
    """The server is read-only, so nobody dispatches from it."""


def dispatcher_lock(database: str) -> bytes:
    """Return the name of the lock that the dispatcher of *database* holds."""
    # A lock's name has 64 characters at most, and a database's may have as many. Names of locks
    # are the whole server's, so that of the database must be in it.
    digest = hashlib.sha256(database.encode()).hexdigest()[:16]
    return b"streamfrom." + digest.encode()


def member_lock(database: str, member: bytes) -> bytes:
    """Return the name of the lock by which a member shows that it is connected."""
    return dispatcher_lock(database) + b"." + member


def join(database: str, member: Member) -> Conversation[str | None]:
    """Make the connection known, with the member's row; return why it has no row; None if it has one.

    Raises:
        MemberExists: the member has another connection to this database.
        ServerRefused: the server has trouble that no right explains.
    """
    for sql in SETTINGS:
        yield StoreQuery(sql)
    # This lock is the sign of life: the server frees it with the connection.
    if not (yield from _take(member_lock(database, member.id.encode()), 0)):
        raise MemberExists
    if (yield from _is_read_only()):
        return _READ_ONLY_SAID
    try:
        return (yield from _publish(member))
    except ServerRefused as refused:
        if refused.code in READ_ONLY:
            return _READ_ONLY_SAID
        raise


def _is_read_only() -> Conversation[bool]:
    """Ask, for an account that is above that could still write, and make a replica differ."""
    answer = yield StoreQuery(
        b"SELECT @@global.read_only OR @@global.innodb_read_only", 1, AskReadOnly()
    )
    return answer.rows[0][0] != (b"0",)


def _publish(member: Member) -> Conversation[str | None]:
    """Write the member's row unless it is there, and the table too; return what denies it."""
    try:
        try:
            yield _insert(member)
        except ServerRefused as refused:
            if refused.code != NO_SUCH_TABLE:
                raise
            yield StoreQuery(CREATE_TABLE)
            yield _insert(member)
    except ServerRefused as refused:
        if refused.code == DUPLICATE_KEY:
            return None
        if refused.code in DENIED:
            return refused.message
        raise
    return None


def publish_again(member: Member, term: int) -> Conversation[None]:
    """Write the member's row, which somebody has deleted, with its term; where that cannot be, do nothing."""
    try:
        denied = yield from _publish(member)
        if denied is None and term:
            yield _set_term(member, term)
    except ServerRefused:
        return


def _set_term(member: Member, term: int) -> StoreQuery:
    return StoreQuery(
        b"UPDATE %b SET term = %d WHERE member = %b"
        % (TABLE, term, literal(member.id.encode())),
        about=SetTerm(member.id, term),
    )


def _insert(member: Member) -> StoreQuery:
    return StoreQuery(
        b"INSERT INTO %b (%b) VALUES (%b, 0)"
        % (TABLE, b", ".join(COLUMNS), b", ".join(literal(value) for value in member.values)),
        about=InsertMember(member),
    )


def acquire(database: str, wait_s: int) -> Conversation[bool]:
    """Wait for the dispatcher's lock; return whether the connection has it now."""
    return (yield from _take(dispatcher_lock(database), wait_s))


def _take(lock: bytes, wait_s: int) -> Conversation[bool]:
    answer = yield StoreQuery(
        b"SELECT GET_LOCK(%b, %d)" % (literal(lock), wait_s), 1, TakeLock(lock, wait_s)
    )
    (value,) = answer.rows[0][0]
    if value is None:
        raise ServerRefused(INTERRUPTED, "the wait for the lock was interrupted")
    return value == b"1"


def write_term(member: Member) -> Conversation[int]:
    """Write the next term into the member's row and return it; 0 where no row can be written.

    Only the holder of the lock calls this, so no other term is written meanwhile.

    Raises:
        NotWritable: the server is read-only.
        ServerRefused: the server has trouble that no right explains.
    """
    if (yield from _is_read_only()):
        raise NotWritable
    try:
        if (yield from _publish(member)) is not None:
            return 0
        answer = yield StoreQuery(b"SELECT MAX(term) FROM %b" % TABLE, 1, AskTerm())
        term = int(answer.rows[0][0][0] or 0) + 1
        yield _set_term(member, term)
    except ServerRefused as refused:
        if refused.code in READ_ONLY:
            raise NotWritable from refused
        if refused.code in DENIED:
            return 0
        raise
    return term


def read_directory(database: str, own: Member) -> Conversation[DirectoryRead]:
    """Read who is there and who dispatches.

    The server answers that itself, by who holds which lock: no row has to be kept fresh for it, and no
    clock is asked. Any connection may ask.
    """
    lock = dispatcher_lock(database)
    locks = b"IS_USED_LOCK(%b) AS holder, IS_USED_LOCK(%b) AS own" % (
        literal(lock),
        literal(member_lock(database, own.id.encode())),
    )
    try:
        answer = yield StoreQuery(
            b"SELECT k.holder, k.own, IS_USED_LOCK(CONCAT(%b, IFNULL(m.member, ''))), m.%b"
            b" FROM (SELECT %b) AS k LEFT JOIN %b AS m ON TRUE"
            % (literal(member_lock(database, b"")), b", m.".join(COLUMNS), locks, TABLE),
            3 + len(COLUMNS),
            AskMembers(lock, own.id, has_rows=True),
        )
    except ServerRefused as refused:
        if refused.code != NO_SUCH_TABLE and refused.code not in DENIED:
            raise
        answer = yield StoreQuery(
            b"SELECT %b" % locks, 2, AskMembers(lock, own.id, has_rows=False)
        )
        holder, mine = answer.rows[0][0]
        return DirectoryRead(_number(holder), _number(mine), (), is_unreadable=True)
    entries = tuple(
        (_number(connection), member_of(fields))
        for (_, _, connection, *fields), _ in answer.rows
        if fields[0] is not None
    )
    holder, mine, *_ = answer.rows[0][0]
    return DirectoryRead(_number(holder), _number(mine), entries)


def forget(members: tuple[str, ...]) -> Conversation[None]:
    """Delete the rows of members that have long been gone."""
    ids = b", ".join(literal(member.encode()) for member in members)
    yield StoreQuery(
        b"DELETE FROM %b WHERE member IN (%b)" % (TABLE, ids), about=ForgetMembers(members)
    )


def _number(value: bytes | None) -> int | None:
    return None if value is None else int(value)
