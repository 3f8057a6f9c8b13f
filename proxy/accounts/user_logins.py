"""Logs in at every shard as each user with an account of its own, for `streamfrom check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.account import account_of
from streamfrom.proxy.backends.control_connection import Control
from streamfrom.proxy.config.file import SessionAccount
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.report import Finding, Level


if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from streamfrom.proxy.config.file import Config, User


# By each of these the name of the dispatcher's lock can be seen, whose secret the directory has.
_SIGHTS: Final = {
    "PROCESS": "SHOW ENGINE INNODB STATUS",
    "performance_schema": "SELECT 1 FROM performance_schema.metadata_locks LIMIT 0",
    "SELECT on streamfrom": "SELECT 1 FROM streamfrom.locks LIMIT 0",
}
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
    """Yield a finding for each user with an account of its own at each shard that answers."""
    for user in config.users:
        if user.account is SessionAccount.OWN:
            for keyspace in config.keyspaces:
                for shard in keyspace.shards:
                    control = Control(
                        keyspace.name, shard.name, account_of(user).at(shard.primary)
                    )
                    try:
                        yield await _login(control, f"{keyspace.name}/{shard.name}", user.name)
                    except BackendUnavailable:
                        continue  # the check of the shard says so
                    finally:
                        await control.close()


async def _login(control: Control, shard: str, user: str) -> Finding:
    try:
        ((who,),) = await control.rows("SELECT CURRENT_USER()")
        seen = [what for what, sql in _SIGHTS.items() if await _may_read(control, sql)]
    except BackendError as error:
        if error.code == _NO_DATABASE:
            return Finding(
                Level.OK, shard, f"user {user} logs in, and may use no database here"
            )
        return Finding(Level.FAULT, shard, f"user {user} cannot log in: {error}")
    if seen:
        text = f"user {user} logs in as {who}, and could see the name of the dispatcher's lock ({', '.join(seen)})"
        return Finding(
            Level.WARNING, shard, text, "revoke that: who knows the name can stop delivery"
        )
    return Finding(Level.OK, shard, f"user {user} logs in as {who}")


async def _may_read(control: Control, sql: str) -> bool:
    try:
        await control.rows(sql)
    except BackendError as error:
        return error.code in _NOT_THERE
    return True
