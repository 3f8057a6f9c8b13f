"""Logs in at every shard as each user with their own account, for `streamfrom check`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container, Iterable
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.account import account_of
from streamfrom.proxy.backends.connect import open_backend
from streamfrom.proxy.config.file import (
    Config,
    SessionAccount,
    ShardConfig,
    TransactionMode,
    User,
)
from streamfrom.proxy.errors import BackendError, ProxyError
from streamfrom.proxy.report import Finding, Level
from streamfrom.proxy.twophase.decisions import DECIDES, TABLE
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import parse_text_row


if TYPE_CHECKING:
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer


# With any of these the account sees the name of the dispatcher's lock, which contains the directory's secret.
_SIGHTS: Final = {
    "PROCESS": b"SHOW ENGINE INNODB STATUS",
    "performance_schema": b"SELECT 1 FROM performance_schema.metadata_locks LIMIT 0",
    "SELECT on streamfrom": b"SELECT 1 FROM streamfrom.locks LIMIT 0",
}
# Inserts no row. The table need not exist yet.
_DECIDE: Final = (
    b"INSERT INTO streamfrom.decisions (id, branches, time_created)"
    b" SELECT id, branches, time_created FROM streamfrom.decisions WHERE FALSE"
)
ANSWER_TIMEOUT_S: Final = 10.0
# The errors for an account that may read, if the table or database does not exist.
_NOT_THERE: Final = frozenset({1049, 1146})
_NO_DATABASE: Final = (
    1044  # the login succeeded, but the account has no privilege on the shard's database
)


def shared_note(users: Iterable[User]) -> Finding | None:
    """Return the finding about users on the shards' accounts; None if there are none."""
    names = [user.name for user in users if user.account is SessionAccount.SHARED]
    if not names:
        return None
    return Finding(
        Level.INFO,
        "users",
        f'account = "shared" is no wall: {", ".join(names)} may do all that the accounts of the shards\' addresses may',
    )


_DATABASE_FIX: Final = (
    "the login is good: check the database's name in the address, which is the keyspace's if the address names none; create the"
    " database, and grant the account its rights there"
)
_EXPIRED_FIX: Final = "ALTER USER … IDENTIFIED BY the password, which renews it"
# By words in the text of the server, or of OpenSSL; the first that fits.
_FIXES: Final = {
    "to database '": _DATABASE_FIX,
    "Unknown database '": _DATABASE_FIX,
    "certificate verify failed": "ssl_ca of the address names the authority that signed the server's certificate; renew a"
    " certificate that has expired; with ssl_mode=verify_identity it names the host of the address",
    "require_secure_transport": "add ?ssl_mode=required to the address",
    "ccount is locked": "ALTER USER … ACCOUNT UNLOCK",
    "assword has expired": _EXPIRED_FIX,
    "must SET PASSWORD": _EXPIRED_FIX,
    # A fresh mariadb-install-db makes accounts without a name, which refuse the right password as well.
    "Access denied": "check {what}, and the host of the account: SELECT user, host FROM mysql.user; an account without a name"
    " that fits the host better comes first, as mariadb-install-db makes it: DROP USER ''@'localhost'; an account with"
    " REQUIRE SSL, or a server with require_secure_transport, needs ?ssl_mode=required in the address",
}


def login_fix(trouble: str, what: str) -> str | None:
    """Return the fix for a server's refusal; *what*: the first thing to check if an account is refused."""
    fix = next((fix for words, fix in _FIXES.items() if words in trouble), None)
    return None if fix is None else fix.format(what=what)


async def user_logins(config: Config, away: Container[str] = ()) -> AsyncIterator[Finding]:
    """Yield the findings about each user with their own account at each shard, except those that are *away*."""
    is_twopc = config.server.transaction_mode is TransactionMode.TWOPC
    for user in config.users:
        if user.account is SessionAccount.OWN:
            for keyspace in config.keyspaces:
                for shard in keyspace.shards:
                    place = f"{keyspace.name}/{shard.name}"
                    if place not in away:
                        for finding in await _login(place, shard, user, is_twopc=is_twopc):
                            yield finding


async def _login(
    place: str, shard: ShardConfig, user: User, *, is_twopc: bool
) -> list[Finding]:
    """Log in as a session does, with any authentication method that the server requests."""
    dsn, keyspace = shard.primary, place.partition("/")[0]
    asked = [b"SELECT CURRENT_USER()", *_SIGHTS.values(), *([_DECIDE] * is_twopc)]
    try:
        backend = await open_backend(
            keyspace, shard.name, dsn, account_of(user), database=dsn.database
        )
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                who, *answers = await backend.answers(list(map(query, asked)))
        finally:
            backend.close()
        if who.error is not None:
            raise who.error.exception()
    except TimeoutError:
        text = f"user {user.name} gets no answer within {ANSWER_TIMEOUT_S:g} s"
        return [Finding(Level.ERROR, place, text)]
    except ProxyError as error:
        if isinstance(error, BackendError) and error.code == _NO_DATABASE:
            text = f"user {user.name} logs in, and may use no database here"
            return [Finding(Level.OK, place, text)]
        text = f"user {user.name} cannot log in: {error}"
        fix = login_fix(text, "that the account is there and has this password")
        return [Finding(Level.ERROR, place, text, fix)]
    (account,) = parse_text_row(who.rows[0], 1)
    text = f"user {user.name} logs in as {(account or b'').decode()}"
    if seen := [what for what, answer in zip(_SIGHTS, answers, strict=False) if _may(answer)]:
        text += f", and could see the name of the dispatcher's lock ({', '.join(seen)})"
        fix = "revoke that: an account that knows the name can stop delivery"
        found = [Finding(Level.WARNING, place, text, fix)]
    else:
        found = [Finding(Level.OK, place, text)]
    if is_twopc and not _may(answers[-1]):
        text = f"user {user.name} may commit transactions over several shards only if they are READ ONLY"
        fix = f"GRANT {DECIDES} ON {TABLE}, if it writes in such transactions"
        found.append(Finding(Level.INFO, place, text, fix))
    return found


def _may(answer: BufferedAnswer) -> bool:
    return answer.error is None or answer.error.code in _NOT_THERE
