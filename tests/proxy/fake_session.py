"""A session of a `FakeServer`, without its socket: its variables, and its standard replies.

It follows SET, USE and transactions, reports changes through the session tracker on request, and KILLs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamfrom.proxy.wire.constants import FieldType, Status, TrackerKind
from streamfrom.proxy.wire.resultset import Tracker
from tests.proxy.fake_answers import Error, Ok, Rows, collations_of, rows_of


if TYPE_CHECKING:
    from tests.proxy.fake_answers import Answer
    from tests.proxy.fake_server import FakeServer


_KNOWN_ID = re.compile(
    r"SET last_insert_id = CAST\(IF\(LAST_INSERT_ID\(\), LAST_INSERT_ID\(\), (\d+)\) AS UNSIGNED\)"
)
_ASSIGNMENT = re.compile(
    r"(?:@@(?:session\.)?|@|SESSION )?(\w+)\s*:?=\s*('(?:[^']|'')*'|[^,\s]+)", re.IGNORECASE
)
_NAMES = re.compile(r"SET NAMES '?(\w+)'?(?: COLLATE '?(\w+)'?)?", re.IGNORECASE)
_KILL = re.compile(r"KILL (QUERY )?(\d+)")
_DEFAULTS = {
    "character_set_connection": "utf8mb4",
    "collation_connection": "utf8mb4_general_ci",
}
_ANSWERS = (
    ("SELECT k.holder, EXISTS", Rows(("holder", "is_ours"), ((None, b"0"),))),
    ("SELECT id_prefix, member ", Rows(("id_prefix", "member"))),
    # A variable that was never set; a test that needs more adds a rule.
    (", CHARSET(@`", Rows(tuple("vcoh"), ((None, b"binary", b"binary", None),))),
    ("information_schema.tables", Rows(("table_name", "table_comment"))),
    ("information_schema.triggers", Rows(("part", "owner", "parent"))),
)


class ServerSession:
    """A server's state of one client.

    Attributes:
        variables: session variables that were set since the login or the last reset.
        user_variables: names of the user variables set since then.
    """

    def __init__(self, server: FakeServer) -> None:
        self.database: str | None = None
        self.variables: dict[str, str] = {}
        self.user_variables: set[str] = set()
        self.in_transaction = False
        self.last_insert_id = 0
        self._server = server

    @property
    def autocommit(self) -> bool:
        return self.variables.get("autocommit", "ON") == "ON"

    @property
    def status(self) -> int:
        return (Status.AUTOCOMMIT if self.autocommit else 0) | (
            Status.IN_TRANS if self.in_transaction else 0
        )

    @property
    def _tracked(self) -> list[str]:
        return self.variables.get("session_track_system_variables", "").split(",")

    def schema_trackers(self) -> tuple[Tracker, ...]:
        if self.variables.get("session_track_schema") != "1":
            return ()
        return (Tracker(TrackerKind.SCHEMA, "", self.database or ""),)

    def own_answer(self, sql: str) -> Answer:
        if sql.startswith("SET STATEMENT "):
            sql = sql.partition(" FOR ")[2]
        verb = sql.split(None, 1)[0].upper() if sql.strip() else ""
        match verb:
            case "SET":
                return self._set(sql)
            case "USE":
                self.database = sql.split()[1].strip("`")
                return Ok(trackers=self.schema_trackers())
            case "BEGIN" | "START":
                self.in_transaction = True
            case "COMMIT" | "CREATE" | "DROP" | "ALTER" | "TRUNCATE" if (
                " TEMPORARY " not in sql
            ):
                self.in_transaction = False
            case "ROLLBACK" if " TO " not in sql:
                self.in_transaction = False
            case "XA" if "RECOVER" in sql:
                return Rows(("formatID", "gtrid_length", "bqual_length", "data"))
            case "XA" if " END " not in sql:
                self.in_transaction = " START " in sql
            case "KILL":
                return self._kill(sql)
            case "SELECT":
                return self._select(sql)
            case "SHOW" if sql == "SHOW GRANTS":
                grant = b"GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION"
                return Rows(("grants",), ((grant,),), types=(FieldType.VAR_STRING,))
            case "SHOW":
                return Rows(("Show",))
            case "INSERT" | "UPDATE" | "DELETE" | "REPLACE":
                return Ok(affected_rows=1)
            case _:
                pass
        return Ok()

    def _select(self, sql: str) -> Answer:
        if "USER_VARIABLES" in sql.upper():
            return Rows(("VARIABLE_NAME",), tuple((n.encode(),) for n in self.user_variables))
        if (numbers := sql.count("IS_USED_LOCK('streamfrom.")) > 1:
            return Rows(tuple(map(str, range(numbers))), ((None,) * numbers,))
        if "FROM streamfrom.members WHERE" in sql and "IS_USED_LOCK" in sql:
            return Rows(("member", "fleet", "address", "version", "configuration"))
        if "@@global.read_only" in sql:
            read_only = b"1" if self._server.read_only else b"0"
            version = self._server.version.encode()
            return Rows(
                ("0", "VERSION()"),
                ((read_only, version),),
                types=(FieldType.LONGLONG, FieldType.VAR_STRING),
            )
        if sql.startswith("SELECT CURRENT_USER(), VERSION()"):
            place = (b"here", b"%d" % self._server.port, b"/data/")
            who = (b"root@%", self._server.version.encode(), *place)
            return Rows(("user", "version", "host", "port", "folder"), (who,))
        if "information_schema.COLLATIONS" in sql:
            return collations_of(self._server.version, self._server.collation)
        if sql.endswith("LAST_INSERT_ID() + LAST_INSERT_ID(0) LIMIT 1"):
            before, self.last_insert_id = b"%d" % self.last_insert_id, 0
            if sql.startswith("SELECT FOUND_ROWS(), ROW_COUNT(), "):
                return Rows(("a", "b", "c"), ((b"3", b"0", before),))
            return rows_of(int(before))
        if "LAST_INSERT_ID()" in sql:
            return rows_of(self.last_insert_id)
        return next((rows for text, rows in _ANSWERS if text in sql), rows_of(1))

    def _set(self, sql: str) -> Answer:
        changed: dict[str, str] = {}
        if known := _KNOWN_ID.fullmatch(sql):
            self.last_insert_id = self.last_insert_id or int(known[1])
            return Ok()
        if names := _NAMES.match(sql):
            charset = names[1]
            for part in ("client", "connection", "results"):
                changed[f"character_set_{part}"] = charset
            changed["collation_connection"] = names[2] or f"{charset}_general_ci"
            sql = sql[names.end() :]
        for found in _ASSIGNMENT.finditer(sql):
            name, value = found[1].lower(), found[2].strip("'").replace("''", "'")
            if found[0].startswith("@") and not found[0].startswith("@@"):
                self.user_variables.add(name)
                continue
            if value.startswith("@@"):
                of = value.rpartition(".")[2]
                value = self.variables.get(of, _DEFAULTS[of])
            if name == "last_insert_id":
                self.last_insert_id = int(value)
                continue
            if name == "autocommit":
                value = "ON" if value.upper() in {"1", "ON", "TRUE"} else "OFF"
                if value == "ON":
                    self.in_transaction = False
            if name.startswith("session_track_"):
                self.variables[name] = value
            else:
                changed[name] = value
        self.variables |= changed
        tracked = set(self._tracked)
        trackers = [
            Tracker(TrackerKind.SYSVAR, name, value)
            for name, value in changed.items()
            if name in tracked
        ]
        if self.variables.get("session_track_state_change") == "1":
            trackers.append(Tracker(TrackerKind.STATE, "", "1"))
        return Ok(trackers=tuple(trackers))

    def _kill(self, sql: str) -> Answer:
        found = _KILL.match(sql)
        assert found is not None
        victim = self._server.connections.get(int(found[2]))
        if victim is None:
            return Error(1094, f"Unknown thread id: {found[2]}")
        if found[1]:
            victim.was_killed.set()
        else:
            victim.abort()
        return Ok()
