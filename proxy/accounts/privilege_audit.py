"""Which limits of users the servers enforce, and which the proxy alone. Pure.

The audit compares the users with the accounts that their statements run under, and with what those
accounts may do. Each finding names the statements that cure it, ready to paste but for the password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.accounts.grants import ALL, OF_DATABASES, Rights
from streamfrom.proxy.config.file import Role
from streamfrom.proxy.report import Finding, Level
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from streamfrom.proxy.config.file import User


# The operator writes a password of their own here.
_BLANK: Final = "<password>"
# The shorter limit of the two: MySQL's.
_USER_CHARACTERS_MAX: Final = 32
_NARROW: Final = frozenset({Role.PRODUCER, Role.CONSUMER})
# The proxy's own work may need these rights on the whole server, so a new account gets them as well.
_OF_THE_PROXY: Final = frozenset({"XA_RECOVER_ADMIN"})


@dataclass(frozen=True, slots=True)
class BackendAccount:
    """An account as its server knows it.

    name: the DSN's user.
    host: the host part of the account's name, `%` where the server was not asked.
    rights: what the account may do; None where the server could not be asked.
    on_mysql: the server is MySQL, where an account can be made to give its old password for a new one.
    trouble: why the server refused the account; None where it did not, or is away.
    """

    name: str
    host: str = "%"
    rights: Rights | None = None
    trouble: str | None = None
    on_mysql: bool = False

    def __str__(self) -> str:
        return f"{_literal(self.name)}@{_literal(self.host)}"


@dataclass(frozen=True, slots=True)
class ShardAccounts:
    """One shard with its accounts.

    server: names the shard's server; shards on one server have the same text.
    owner: the account of the primary's address.
    readonly: the account for users with role readonly; None where the shard has none.
    replicas: the address of each replica, with the readonly account as that server has it.
    """

    keyspace: str
    shard: str
    server: str
    database: str
    owner: BackendAccount
    readonly: BackendAccount | None = None
    replicas: tuple[tuple[str, BackendAccount], ...] = ()

    def __str__(self) -> str:
        return f"{self.keyspace}/{self.shard}"


def findings(users: Sequence[User], shards: Sequence[ShardAccounts]) -> Iterator[Finding]:
    """Yield what the servers do not enforce of the limits of *users*, by shard, then by user."""
    for shard in shards:
        yield from _readonly(users, shard)
        yield from _reach(users, shard, shard.owner, shards, is_readonly=False)
        if shard.readonly is not None:
            yield from _reach(users, shard, shard.readonly, shards, is_readonly=True)
    yield from _unseen(users)


def _warning(place: object, text: str, cure: Iterable[str]) -> Finding:
    """Return a finding whose *cure* are statements, in order."""
    return Finding(Level.WARNING, str(place), text, "; ".join(cure) or None)


# --- who may only read --------------------------------------------------------------------


def _readonly(users: Sequence[User], shard: ShardAccounts) -> Iterator[Finding]:
    if shard.readonly is not None:
        yield from _of_account(shard, shard.readonly, "")
        for address, there in shard.replicas:
            yield from _of_account(shard, there, f" at replica {address}")
        return
    readers = [
        user.name
        for user in users
        if user.role is Role.READONLY and _sees(user, shard.keyspace)
    ]
    if readers:
        named = _new_name(shard.keyspace, "reader")
        yield _warning(
            shard,
            f"only the proxy keeps {_listed('user', readers)} from writing, as the shard has no"
            f' readonly account; say readonly = "mysql://{named}:{_BLANK}@" and run on its server',
            _created(named, shard.owner, _READS, shard.database),
        )


def _of_account(shard: ShardAccounts, account: BackendAccount, place: str) -> Iterator[Finding]:
    """Yield what is to be said of a readonly account on one of its servers."""
    what = f"readonly account {account}{place}"
    if account.trouble is not None:
        text = f"{what}: {account.trouble}; readonly users are refused there"
        yield Finding(Level.FAULT, str(shard), text)
    if account.rights is None:
        return
    more = account.rights.beyond_reading()
    if not more:
        yield Finding(Level.OK, str(shard), f"{what} may read and no more")
        return
    places = ", ".join(f"{', '.join(sorted(each.privileges))} on {each.level}" for each in more)
    yield _warning(
        shard,
        f"{what} may do more than read ({places}), from which only the proxy keeps readonly"
        " users; run there",
        (
            *(f"REVOKE {role} FROM {account}" for role in account.rights.roles),
            *(
                f"REVOKE {', '.join(sorted(each.privileges))} ON {each.level} FROM PUBLIC"
                for each in more
                if each.is_everybodys
            ),
            f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {account}",
            f"GRANT {_READS} ON {_database(shard.database)}.* TO {account}",
        ),
    )


# --- who may not see all keyspaces --------------------------------------------------------


def _reach(
    users: Sequence[User],
    shard: ShardAccounts,
    account: BackendAccount,
    shards: Sequence[ShardAccounts],
    *,
    is_readonly: bool,
) -> Iterator[Finding]:
    """Yield which keyspaces *account* reaches that users who run under it must not see."""
    rights = account.rights
    if rights is None:
        return
    # Who sees all keyspaces needs no limit, and readonly users run under the readonly account if there is one.
    served = [
        user
        for user in users
        if user.keyspaces is not None
        and _sees(user, shard.keyspace)
        and (user.role is Role.READONLY and shard.readonly is not None) == is_readonly
    ]
    # Dictionaries, as sets that keep the order in which things are found.
    reached: dict[str, None] = {}
    kept_out: dict[str, None] = {}
    for other in shards:
        if other.server != shard.server or other.database == shard.database:
            continue
        barred = [user.name for user in served if not _sees(user, other.keyspace)]
        if barred and rights.at(other.database):
            reached[other.keyspace] = None
            kept_out.update(dict.fromkeys(barred))
    if not reached:
        return
    key = "readonly" if is_readonly else "primary"
    named = _new_name(shard.keyspace, "reader" if is_readonly else "")
    if is_readonly:
        wanted = _READS
    else:
        held = rights.at(shard.database) & OF_DATABASES
        wanted = ALL if ALL in held else ", ".join(sorted(held)) or _DELIVERY
    whole = set().union(*(g.privileges for g in rights.granted if g.database is None))
    created = BackendAccount(named, account.host)
    yield _warning(
        shard,
        f"account {account} of {key} reaches {_listed('keyspace', reached)} too, which"
        f" {_listed('user', kept_out)} must not see and only the proxy hides; name an account of its"
        f" own in {key} and run on its server",
        (
            *_created(named, account, wanted, shard.database),
            *(f"GRANT {each} ON *.* TO {created}" for each in sorted(whole & _OF_THE_PROXY)),
        ),
    )


# --- what no account is narrow enough for -------------------------------------------------


def _unseen(users: Sequence[User]) -> Iterator[Finding]:
    for user in users:
        why = [f"role {user.role}"] if user.role in _NARROW else []
        if user.tables is not None:
            why.append("tables")
        if why:
            yield Finding(
                Level.INFO,
                f"user {user.name}",
                f"the proxy holds this user to {' and '.join(why)}: on the servers its"
                " statements run under accounts that others share",
            )


# --- words --------------------------------------------------------------------------------

_READS: Final = "SELECT, SHOW VIEW"
_DELIVERY: Final = "SELECT, INSERT, UPDATE, DELETE"


def _sees(user: User, keyspace: str) -> bool:
    return user.keyspaces is None or keyspace in user.keyspaces


def _listed(noun: str, names: Collection[str]) -> str:
    return f"{noun}{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _new_name(keyspace: str, kind: str) -> str:
    """Return a name for a new account; one that URLs, servers and shells take as it stands."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in keyspace)
    end = f"_{kind}" if kind else ""
    return f"streamfrom_{plain}"[: _USER_CHARACTERS_MAX - len(end)] + end


def _created(
    name: str, beside: BackendAccount, privileges: str, database: str
) -> tuple[str, ...]:
    """Return what makes an account on the server of *beside*, for the same host."""
    account = BackendAccount(name, beside.host)
    # Both servers let every account change its own password; MySQL can ask for the one it has.
    keeps = " PASSWORD REQUIRE CURRENT" if beside.on_mysql else ""
    return (
        f"CREATE USER {account} IDENTIFIED BY '{_BLANK}'{keeps}",
        f"GRANT {privileges} ON {_database(database)}.* TO {account}",
    )


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _database(name: str) -> str:
    r"""Return a database's name as GRANT takes it: _ and % would stand for other characters."""
    return quote_identifier(re.sub(r"[\\_%]", r"\\\g<0>", name))
