"""What a user may do. Pure: roles, keyspaces, and the statements that nobody may send.

The proxy's accounts live in its configuration; on the backends every statement runs under the
account of the DSN. So a statement that would change or show that account is not passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.config.file import Role
from proxy.errors import CommandDenied, DatabaseAccessDenied
from sqlparse_ext.errors import Unsupported
from sqlparse_ext.statements import Kind, SetKind, Uses


if TYPE_CHECKING:
    from proxy.config.file import User
    from sqlparse_ext.statements import Shape


# What a user of role "readonly" may run; everything else is denied.
_READS: Final = frozenset(
    {
        Kind.SELECT,
        Kind.SHOW,
        Kind.EXPLAIN,
        Kind.SET,
        Kind.USE,
        Kind.BEGIN,
        Kind.COMMIT,
        Kind.ROLLBACK,
        Kind.SAVEPOINT,
        Kind.KILL,
        Kind.EMPTY,
    }
)
_READS_THAT_WRITE: Final = Uses.INTO | Uses.LOCKING_READ | Uses.GLOBAL_SCOPE
# SET PASSWORD, SET ROLE, SET DEFAULT ROLE, SET RESOURCE GROUP.
_OF_THE_ACCOUNT: Final = frozenset({"password", "role", "default", "resource"})
_CHANGES_ACCOUNTS: Final = frozenset({"ALTER", "DROP", "RENAME"})
_CHANGES_RIGHTS: Final = frozenset({"GRANT", "REVOKE"})


class Guard:
    """One logged-in user.

    Attributes:
        user, host: who, and from where: what a refusal names.
        reads_only: the user's role allows no write.
    """

    __slots__ = ("host", "reads_only", "user")

    def __init__(self, user: User, host: str) -> None:
        self.user = user
        self.host = host
        self.reads_only = user.role not in (Role.ADMIN, Role.READWRITE)

    def check_keyspace(self, keyspace: str, target: str) -> None:
        """Raise DatabaseAccessDenied, naming *target*, unless the user may use *keyspace*."""
        allowed = self.user.keyspaces
        if allowed is not None and keyspace not in allowed:
            raise DatabaseAccessDenied(self.user.name, self.host, target)

    def check_statement(self, shape: Shape) -> None:
        """Raise CommandDenied or Unsupported for what this user may not send."""
        if any(
            item.kind is SetKind.OTHER and item.name in _OF_THE_ACCOUNT for item in shape.set
        ):
            raise Unsupported(
                f"SET {shape.words[0]}: accounts live in the proxy's configuration"
            )
        if shape.uses & Uses.IDENTITY and _is_about_accounts(shape):
            # `mysqladmin password` does this. Passed on it would lock the proxy out of the server.
            raise Unsupported(
                f"{shape.verb} of CURRENT_USER() or USER():"
                " accounts live in the proxy's configuration"
            )
        if self.reads_only and not _is_read(shape):
            table = shape.tables[0].name if shape.tables else ""
            raise CommandDenied(shape.verb, self.user.name, self.host, table)


def _is_about_accounts(shape: Shape) -> bool:
    return shape.verb in _CHANGES_RIGHTS or (
        shape.verb in _CHANGES_ACCOUNTS and shape.words[:1] == ("USER",)
    )


def _is_read(shape: Shape) -> bool:
    if shape.kind not in _READS or shape.uses & _READS_THAT_WRITE:
        return False
    # MariaDB's ANALYZE runs the statement it explains; SET STATEMENT runs the one behind FOR.
    return shape.verb != "ANALYZE" and not any(i.kind is SetKind.OTHER for i in shape.set)
