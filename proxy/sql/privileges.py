"""What a user may do. Pure: keyspaces, roles, and the statements that no user may send.

`proxy.sql.confinement` says what restricted users may send; `proxy.sql.account_protection` protects the accounts on the
servers from all users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.engine.sharding.keyspace import parse_target
from streamfrom.proxy.config.file import Role, SessionAccount
from streamfrom.proxy.errors import CommandDenied, DatabaseAccessDenied
from streamfrom.proxy.sql.account_protection import (
    check_accounts,
    may_show_hashes,
)
from streamfrom.sqlparse_ext.statements import Kind, SetKind, Uses


if TYPE_CHECKING:
    from streamfrom.proxy.config.file import User
    from streamfrom.sqlparse_ext.statements import Shape, Statement


# Kinds that a user of role "readonly" may run; all others are denied.
READS: Final = frozenset(
    {Kind.SET, Kind.USE, Kind.BEGIN, Kind.COMMIT, Kind.ROLLBACK, Kind.SAVEPOINT, Kind.KILL}
    | {Kind.EMPTY, Kind.SELECT, Kind.SHOW, Kind.EXPLAIN}
)
_READS_THAT_WRITE: Final = Uses.INTO | Uses.LOCKING_READ | Uses.GLOBAL_SCOPE


class Privileges:
    """One logged-in user.

    Attributes:
        user: the user's name, which a refusal names.
        host: the host of the user's client, which a refusal names.
        accounts: the proxy's own accounts on its servers, in lower case.
        reads_only: the user's role allows no write but those of its role.
    """

    def __init__(self, user: User, host: str, accounts: frozenset[str] = frozenset()) -> None:
        self.user = user
        self.host = host
        self.accounts = accounts
        self.reads_only = user.role not in (Role.ADMIN, Role.READWRITE)

    def check_target(self, target: str) -> None:
        """Raise DatabaseAccessDenied unless the user may use the keyspace of *target*.

        It is raised, as on servers, also where no keyspace has that name, so the error does not tell which keyspaces exist.

        Raises:
            TargetError: *target* is malformed.
        """
        allowed = self.user.keyspaces
        if allowed is not None and parse_target(target).keyspace not in allowed:
            raise DatabaseAccessDenied(self.user.name, self.host, target)

    def check_system_schema(self, schema: str) -> None:
        """Raise DatabaseAccessDenied unless the user may use *schema*, which every server has."""
        user = self.user
        is_narrow = user.keyspaces is not None or user.tables is not None
        if (is_narrow and schema != "information_schema") or (
            user.is_restricted and schema == "mysql"
        ):
            raise DatabaseAccessDenied(user.name, self.host, schema)

    def check_statement(
        self, statement: Statement, schema: str | None = None, *, is_explained: bool = False
    ) -> None:
        """Raise CommandDenied or Unsupported for a statement that this user may not send.

        schema: the schema of unqualified names; None where they mean nothing.
        is_explained: the statement stands in an EXPLAIN, which does not run it.
        """
        shape = statement.shape
        # What a user may do on an account of its own, its servers know.
        if self.user.account is SessionAccount.SHARED:
            check_accounts(statement, self.accounts, schema)
            if may_show_hashes(shape, schema):
                raise CommandDenied(shape.verb, self.user.name, self.host, "mysql.user")
        if is_explained or self.user.role is not Role.READONLY:
            return
        if not _is_read(shape):
            table = shape.tables[0].name if shape.tables else ""
            raise CommandDenied(shape.verb, self.user.name, self.host, table)


def _is_read(shape: Shape) -> bool:
    if shape.verb == "UNLOCK":  # dumps end with UNLOCK TABLES, also without a LOCK
        return True
    if shape.kind not in READS or shape.uses & _READS_THAT_WRITE:
        return False
    # MariaDB's ANALYZE runs the statement it explains; SET STATEMENT runs the one after FOR.
    return shape.verb != "ANALYZE" and not any(i.kind is SetKind.OTHER for i in shape.set)
