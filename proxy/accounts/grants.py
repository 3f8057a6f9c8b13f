"""What an account may do, by the lines of SHOW GRANTS. Pure.

MariaDB and MySQL write them alike: `` GRANT SELECT, UPDATE (`a`) ON `db`.`t` TO `user`@`host` ``. MariaDB adds
the hash of the password, so no line of it may be shown to anybody. MySQL writes REVOKE for a database
that is taken out of a right on all of them (partial_revokes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.local_statements.like_patterns import like_pattern
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from collections.abc import Iterable


ALL: Final = "ALL PRIVILEGES"
# Privileges by which nothing is changed: no data, definition, account, server or file. EXECUTE is not one of
# them, since a routine runs with the rights of who made it, nor is LOCK TABLES, which stops others.
READING: Final = frozenset(
    {
        "USAGE",
        "SELECT",
        "SHOW VIEW",
        "SHOW DATABASES",
        "PROCESS",
        "REPLICATION CLIENT",
        "BINLOG MONITOR",
        "REPLICA MONITOR",
        "SLAVE MONITOR",
        "SHOW_ROUTINE",
        "SHOW CREATE ROUTINE",
    }
)
# Privileges that reach the contents of a database when they are granted on *.*.
OF_DATABASES: Final = frozenset(
    {
        ALL,
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "CREATE",
        "DROP",
        "REFERENCES",
        "INDEX",
        "ALTER",
        "CREATE TEMPORARY TABLES",
        "LOCK TABLES",
        "EXECUTE",
        "CREATE VIEW",
        "SHOW VIEW",
        "CREATE ROUTINE",
        "ALTER ROUTINE",
        "EVENT",
        "TRIGGER",
        "DELETE HISTORY",
        "SHOW CREATE ROUTINE",
    }
)

_NAME: Final = r"""(?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|[^\s`".@,]+)"""
_ROLE: Final = rf"{_NAME}(?:@{_NAME})?"
_RIGHTS: Final = re.compile(
    rf"(?P<verb>GRANT|REVOKE) (?P<what>.+?) ON (?:(?P<kind>TABLE|FUNCTION|PROCEDURE|PACKAGE BODY|PACKAGE) )?"
    rf"(?P<first>\*|{_NAME})(?P<mark>[.@])(?P<second>\*|{_NAME}) (?:TO|FROM) (?P<who>{_ROLE})(?P<rest>.*)",
    re.DOTALL,
)
# To the account itself: a role of MariaDB, to which others may be given, has no host.
_ROLES: Final = re.compile(rf"GRANT (?P<roles>{_ROLE}(?:, ?{_ROLE})*) TO {_NAME}@", re.DOTALL)
_COLUMNS: Final = re.compile(r" ?\([^)]*\)")
_EVERYBODY: Final = "PUBLIC"


@dataclass(frozen=True, slots=True)
class Grant:
    """One line: what may be done where.

    database: a pattern as LIKE has it, or a name where *table* is one; None is the whole server.
    table: a table or routine; None is all of the database.
    is_everybodys: the grant is one to PUBLIC.
    """

    privileges: frozenset[str]
    database: str | None
    table: str | None = None
    is_everybodys: bool = False

    @property
    def level(self) -> str:
        """What GRANT calls the place."""
        if self.database is None:
            return "*.*"
        table = "*" if self.table is None else quote_identifier(self.table)
        return f"{quote_identifier(self.database)}.{table}"

    def covers(self, database: str) -> bool:
        """True when it is about *database*, or something in it."""
        if self.database is None:
            return True
        if self.table is not None:
            return self.database == database
        return like_pattern(self.database).fullmatch(database) is not None


@dataclass(frozen=True, slots=True)
class Rights:
    """All that an account may do, by itself and by its roles.

    revoked: the databases, with privileges, that a grant on *.* leaves out (partial_revokes).
    roles: the roles that were granted to the account itself, as the server quotes them.
    """

    granted: tuple[Grant, ...]
    revoked: tuple[Grant, ...]
    roles: tuple[str, ...]

    def at(self, database: str) -> frozenset[str]:
        """Return what the account may do in *database*, or with a part of it."""
        left_out = frozenset[str]().union(
            *(each.privileges for each in self.revoked if each.covers(database))
        )
        found: set[str] = set()
        for grant in self.granted:
            if grant.database is None:
                found |= (grant.privileges & OF_DATABASES) - left_out
            elif grant.covers(database):
                found |= grant.privileges - {"USAGE"}
        return frozenset(found)

    def beyond_reading(self) -> list[Grant]:
        """Return what is more than to read, each place with the privileges that are."""
        found = []
        for grant in self.granted:
            more = grant.privileges - READING
            if more:
                found.append(Grant(more, grant.database, grant.table, grant.is_everybodys))
        return found


def read_grants(lines: Iterable[str]) -> Rights:
    """Return what the lines of SHOW GRANTS say; lines of another form are passed over."""
    granted: dict[Grant, None] = {}
    revoked: dict[Grant, None] = {}
    roles: dict[str, None] = {}
    for line in lines:
        found = _RIGHTS.match(line)
        if found is not None:
            grant = _grant(found)
            (granted if found["verb"] == "GRANT" else revoked)[grant] = None
        elif (found := _ROLES.match(line)) is not None:
            for role in re.findall(_ROLE, found["roles"]):
                roles[role] = None
    return Rights(tuple(granted), tuple(revoked), tuple(roles))


def _grant(found: re.Match[str]) -> Grant:
    # A column list says where in the table; which columns does not matter here.
    words = _COLUMNS.sub("", found["what"]).split(",")
    privileges = {word.strip().upper() for word in words}
    if "WITH GRANT OPTION" in found["rest"].upper():
        privileges.add("GRANT OPTION")
    is_everybodys = found["who"].strip('`"').upper() == _EVERYBODY
    if found["mark"] == "@" or found["first"] == "*":
        # GRANT PROXY ON an account: whoever logs in may become that one.
        return Grant(frozenset(privileges), None, None, is_everybodys)
    table = None if found["second"] == "*" else _plain(found["second"])
    return Grant(frozenset(privileges), _plain(found["first"]), table, is_everybodys)


def _plain(name: str) -> str:
    if name[:1] in {"`", '"'}:
        return name[1:-1].replace(name[0] * 2, name[0])
    return name
