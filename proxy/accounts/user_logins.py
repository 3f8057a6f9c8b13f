"""Logs in at every shard as each user with an account of its own, for `streamfrom check`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from streamfrom.proxy.backends.account import account_of
from streamfrom.proxy.backends.control_connection import Control
from streamfrom.proxy.config.file import Config, SessionAccount, TransactionMode, User
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.report import Finding, Level
from streamfrom.proxy.twophase.decisions import DECIDES, TABLE


# By each of these the name of the dispatcher's lock can be seen, whose secret the directory has.
_SIGHTS: Final = {
    "PROCESS": "SHOW ENGINE INNODB STATUS",
    "performance_schema": "SELECT 1 FROM performance_schema.metadata_locks LIMIT 0",
    "SELECT on streamfrom": "SELECT 1 FROM streamfrom.locks LIMIT 0",
}
# It inserts no row. The table need not be there yet.
_DECIDE: Final = (
    "INSERT INTO streamfrom.decisions (id, branches, time_created)"
    " SELECT id, branches, time_created FROM streamfrom.decisions WHERE FALSE"
)
# What a server says to who may read, where there is no such table or database.
_NOT_THERE: Final = frozenset({1049, 1146})
_NO_DATABASE: Final = (
    1044  # the login is good, and the account has no right in the shard's database
)


def shared_note(users: Iterable[User]) -> Finding | None:
    """Return what is to be said of users on the shards' accounts; None where there are none."""
    names = [user.name for user in users if user.account is SessionAccount.SHARED]
    if not names:
        return None
    return Finding(
        Level.INFO,
        "users",
        f'account = "shared" is no wall: {", ".join(names)} may do all that the accounts of the shards\' addresses may',
    )


async def user_logins(config: Config) -> AsyncIterator[Finding]:
    """Yield the findings about each user with an account of its own at each shard that answers."""
    is_twopc = config.server.transaction_mode is TransactionMode.TWOPC
    for user in config.users:
        if user.account is SessionAccount.OWN:
            for keyspace in config.keyspaces:
                for shard in keyspace.shards:
                    control = Control(
                        keyspace.name, shard.name, account_of(user).at(shard.primary)
                    )
                    place = f"{keyspace.name}/{shard.name}"
                    try:
                        found = await _login(control, place, user.name, is_twopc=is_twopc)
                    except BackendUnavailable:
                        continue  # the check of the shard says so
                    finally:
                        await control.close()
                    for finding in found:
                        yield finding


async def _login(control: Control, shard: str, user: str, *, is_twopc: bool) -> list[Finding]:
    try:
        ((who,),) = await control.rows("SELECT CURRENT_USER()")
        seen = [what for what, sql in _SIGHTS.items() if await _may_run(control, sql)]
        may_decide = not is_twopc or await _may_run(control, _DECIDE)
    except BackendError as error:
        if error.code == _NO_DATABASE:
            text = f"user {user} logs in, and may use no database here"
            return [Finding(Level.OK, shard, text)]
        return [Finding(Level.ERROR, shard, f"user {user} cannot log in: {error}")]
    text = f"user {user} logs in as {who}"
    if seen:
        text += f", and could see the name of the dispatcher's lock ({', '.join(seen)})"
        fix = "revoke that: an account that knows the name can stop delivery"
        found = [Finding(Level.WARNING, shard, text, fix)]
    else:
        found = [Finding(Level.OK, shard, text)]
    if not may_decide:
        text = f"user {user} may commit transactions over several shards only if they are READ ONLY"
        fix = f"GRANT {DECIDES} ON {TABLE}, if it writes in such transactions"
        found.append(Finding(Level.INFO, shard, text, fix))
    return found


async def _may_run(control: Control, sql: str) -> bool:
    try:
        await control.rows(sql)
    except BackendError as error:
        return error.code in _NOT_THERE
    return True
