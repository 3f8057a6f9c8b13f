"""The same tables on one database and spread over several, for tests that compare their answers.

One real server holds everything: a database for the whole, and per keyspace a database for each
shard. Answers are taken as they come off the wire, so that column definitions are compared byte by
byte; the proxy's have other schema names and nothing else.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pymysql
from pymysql.connections import Connection
from pymysql.constants import COMMAND
from pymysql.protocol import MysqlPacket

from streamfrom.proxy.wire.constants import FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    parse_column_definition,
    parse_text_row,
)
from tests.fixtures.database_servers import DatabaseServer, execute, names, root
from tests.fixtures.running_proxy import RunningProxy, by_hash, write_vschema
from tests.fixtures.streams import run


RANGES = {
    2: ("-80", "80-"),
    3: ("-40", "40-80", "80-"),
    8: ("-20", "20-40", "40-60", "60-80", "80-a0", "a0-c0", "c0-e0", "e0-"),
}
VSCHEMA = by_hash(t="id", u="id")
VSCHEMA["tables"]["r"] = {"type": "reference"}

# What comes and goes with a server's plan (an index, a temporary table) for one statement:
# PRI_KEY, PART_KEY, BINARY and the mark of a column that is grouped by.
PLAN_FLAGS = 0x2 | 0x4000 | 0x80 | 0x8000

# Of an expression: left over from a table's column, or from a temporary table's.
BLOB, ZEROFILL = 0x10, 0x40
TABLE_FLAGS = int(FieldFlag.ENUM | FieldFlag.NO_DEFAULT_VALUE) | BLOB | ZEROFILL
NUMBERS = {FieldType.NEWDECIMAL, FieldType.FLOAT, FieldType.DOUBLE, FieldType.LONGLONG}
FLOATS = {FieldType.FLOAT, FieldType.DOUBLE}
# How long an expression of these may be is up to the plan.
UNSTEADY = FLOATS | {FieldType.BLOB}
Row = tuple[bytes | None, ...]


class Answer(NamedTuple):
    columns: list[ColumnDefinition]
    rows: list[Row]
    error: tuple[int, str] | None


def ask(connection: "Connection[Any]", sql: str, *, prepared: bool = False) -> Answer:
    """Run *sql* and return the answer, undecoded; of a prepared statement, numbers as text."""

    def next_packet() -> bytes:
        packet: bytes = connection._read_packet()._data
        return packet

    def columns_of(count: int) -> list[ColumnDefinition]:
        found = [parse_column_definition(next_packet()) for _ in range(count)]
        if found:
            next_packet()  # PyMySQL is a client of the older kind: EOF
        return found

    try:
        promised = 0
        statement = b""
        if prepared:
            connection._execute_command(COMMAND.COM_STMT_PREPARE, sql)
            head = next_packet()
            statement = head[1:5]
            promised = len(columns_of(int.from_bytes(head[5:7], "little")))
            connection._execute_command(
                COMMAND.COM_STMT_EXECUTE, statement + b"\0" + (1).to_bytes(4, "little")
            )
        else:
            connection._execute_command(COMMAND.COM_QUERY, sql)
        columns = columns_of(next_packet()[0])
        rows: list[Row] = []
        while not ((packet := next_packet())[:1] == b"\xfe" and len(packet) < 9):
            rows.append(
                parse_binary_row(columns, packet) if prepared else tuple(parse_text_row(packet))
            )
        if prepared:
            assert promised == len(columns)
            connection._execute_command(COMMAND.COM_STMT_CLOSE, statement)
    except pymysql.MySQLError as error:
        return Answer([], [], (error.args[0], error.args[1]))
    return Answer(columns, rows, None)


class ComparedCluster:
    """One server with all tables in one database and in the shards of three keyspaces."""

    def __init__(
        self, server: DatabaseServer, proxy: RunningProxy, whole: str, shards: Sequence[str]
    ) -> None:
        self.server = server
        self.proxy = proxy
        self._databases = (whole, *shards)
        self.direct = root(server, database=whole, charset="utf8mb4")
        self.spread = {
            count: proxy.connect(database=f"by{count}", autocommit=True, charset="utf8mb4")
            for count in RANGES
        }

    def run(self, sql: str) -> None:
        for connection in (self.direct, *self.spread.values()):
            run(connection, sql)

    def create(self, columns: str, table: str = "t") -> None:
        self.run(f"DROP TABLE IF EXISTS {table}")
        self.run(f"CREATE TABLE {table} ({columns})")

    def insert(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], table: str = "t"
    ) -> None:
        if rows:
            values = ", ".join(f"({', '.join(row)})" for row in rows)
            fill = self.everywhere if table == "r" else self.run
            fill(f"INSERT INTO {table} ({', '.join(columns)}) VALUES {values}")

    def everywhere(self, sql: str) -> None:
        """Run a statement in every database itself, as one fills reference tables."""
        for database in self._databases:
            execute(self.server, sql, database=database, autocommit=True)

    def close(self) -> None:
        self.direct.close()
        self.proxy.disconnect()
        self.everywhere("DROP TABLE IF EXISTS t, u, r")


@contextmanager
def compared_proxy(
    server: DatabaseServer, folder: Path
) -> Iterator[tuple[RunningProxy, list[str]]]:
    """Run a proxy before *server* with the keyspaces by2, by3 and by8; yield it and all databases, the whole one first."""
    prefix = next(names)
    databases = [prefix]
    vschema = write_vschema(folder, VSCHEMA)
    config = '[server]\nlisten = "127.0.0.1:0"\n'
    for count, ranges in RANGES.items():
        config += f"[keyspaces.by{count}]\nvschema = {json.dumps(str(vschema))}\n"
        for index, shard in enumerate(ranges):
            database = f"{prefix}_{count}_{index}"
            databases.append(database)
            address = f"mysql://root@127.0.0.1:{server.port}/{database}"
            config += (
                f'[[keyspaces.by{count}.shards]]\nname = "{shard}"\nprimary = "{address}"\n'
            )
    for database in databases:
        execute(server, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    path = folder / "scatter.toml"
    path.write_text(config)
    proxy = RunningProxy(path, {})
    yield proxy, databases
    proxy.close()
    for database in databases:
        execute(server, f"DROP DATABASE {database}")


def check(compared: ComparedCluster, *queries: str, in_order: bool = True) -> None:
    for sql in queries:
        theirs = ask(compared.direct, sql)
        for shards, connection in compared.spread.items():
            mine = ask(connection, sql)
            found = differences(mine, theirs, types=False)
            assert not found, (shards, sql, found)
            if in_order:
                assert mine.rows == theirs.rows, (shards, sql)


class Tally:
    """How many random statements were asked, refused (and why) and compared, by their kind."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()

    def refuse(self, kind: str, reason: str) -> None:
        self.refused[kind] += 1
        self.reasons[reason] += 1

    def close(self, differences: Sequence[str], **most: float) -> None:
        """Say what there was, and fail on differences or where too many were refused.

        most: for kinds, the share that may be refused; all others a few of a hundred.
        """
        asked, refused = self.asked.total(), self.refused.total()
        print(f"{asked} asked, {refused} refused, {asked - refused} compared")
        for kind, count in sorted(self.asked.items()):
            print(f"    {kind}: {count} asked, {self.refused[kind]} refused")
        for reason, count in self.reasons.most_common():
            print(f"    {count} times {reason}")
        found = "\n".join(differences[:25])
        assert not differences, f"{len(differences)} differences:\n{found}"
        for kind, count in self.asked.items():
            # Of few any may be refused.
            assert self.refused[kind] <= most.get(kind, 0.08) * count + 5, (kind, self.reasons)


def is_close(mine: bytes | None, theirs: bytes | None) -> bool:
    """True for floats that differ as sums in another order do."""
    if mine is None or theirs is None:
        return mine is theirs
    return math.isclose(float(mine), float(theirs), rel_tol=1e-11, abs_tol=1e-9)


def differences(
    mine: Answer, theirs: Answer, *, folds: frozenset[int] = frozenset(), types: bool = True
) -> str:
    """Say how the proxy's answer differs from the server's; empty if it does not.

    folds: columns whose values stand for all that compare equal, such as 'a' for 'A': they are
        compared without case, trailing spaces and accents.
    types: compare the definitions whole, and not just the names and character sets.
    """
    if theirs.error is not None or mine.error is not None:
        codes = [each.error and each.error[0] for each in (mine, theirs)]
        return "" if codes[0] == codes[1] else f"error {mine.error} instead of {theirs.error}"
    for ours, other in zip(mine.columns, theirs.columns, strict=True):
        if ours.name != other.name or ours.charset != other.charset:
            return f"column {ours} instead of {other}"
        if types and _facts(ours) != _facts(other):
            return f"definition {ours} instead of {other}"
    if len(mine.rows) != len(theirs.rows):
        return f"{len(mine.rows)} rows instead of {len(theirs.rows)}"
    floats = {i for i, column in enumerate(theirs.columns) if column.type in FLOATS}
    left, right = (
        sorted((_normal(row, floats, folds) for row in answer.rows), key=repr)
        for answer in (mine, theirs)
    )
    for (ours_exact, ours_close), (their_exact, their_close) in zip(left, right, strict=True):
        if ours_exact != their_exact or not all(map(is_close, ours_close, their_close)):
            return f"row {ours_exact} {ours_close} instead of {their_exact} {their_close}"
    return ""


def _facts(column: ColumnDefinition) -> tuple[Any, ...]:
    # What has gone through a temporary table is a column of it: MySQL then repeats the name, and
    # MIN of an ENUM is no ENUM any more.
    is_column = bool(column.org_table)
    is_text = column.type in (FieldType.STRING, FieldType.VAR_STRING)
    return (
        column.name,
        column.table,
        column.org_table,
        column.org_name if is_column else "",
        column.charset,
        column.length if is_column or column.type not in UNSTEADY else None,
        FieldType.STRING if is_text and not is_column else column.type,
        column.flags & ~PLAN_FLAGS & (0xFFFF if is_column else ~TABLE_FLAGS),
        column.decimals if column.type in NUMBERS else None,
    )


def _normal(
    row: Row, floats: set[int], folds: frozenset[int]
) -> tuple[tuple[bytes | None, ...], tuple[bytes | None, ...]]:
    """Return the values that must be the same, and those that may differ a little."""
    exact = tuple(
        folded(value) if index in folds and value is not None else value
        for index, value in enumerate(row)
        if index not in floats
    )
    return exact, tuple(value for index, value in enumerate(row) if index in floats)


_ACCENTS = str.maketrans("äöüÄÖÜéÉ", "aouAOUeE")


def folded(value: bytes) -> bytes:
    """Return what all strings have that the loosest of the collations takes for equal."""
    return value.decode("utf-8", "replace").translate(_ACCENTS).lower().rstrip(" ").encode()


_INTEGERS = (FieldType.TINY, FieldType.SHORT, FieldType.YEAR, FieldType.LONG, FieldType.INT24, FieldType.LONGLONG)  # fmt: skip
# How numbers are coded, as `struct` says it.
_FORMATS = dict(zip((*_INTEGERS, FieldType.FLOAT, FieldType.DOUBLE), "bhhiiqfd", strict=True))


def parse_binary_row(
    columns: Sequence[ColumnDefinition], row: bytes
) -> tuple[bytes | None, ...]:
    """Return each value: numbers as text, all of their digits; times as they are coded."""
    start = 1 + (len(columns) + 9) // 8
    bitmap = int.from_bytes(row[1:start], "little") >> 2
    packet = MysqlPacket(row[start:], "utf8")
    values: list[bytes | None] = []
    for place, column in enumerate(columns):
        form = _FORMATS.get(FieldType(column.type))
        if bitmap >> place & 1:
            values.append(None)
        elif form is None:
            values.append(packet.read_length_coded_string())
        else:
            is_unsigned = column.flags & FieldFlag.UNSIGNED and form in "bhiq"
            (value,) = packet.read_struct(f"<{form.upper() if is_unsigned else form}")
            values.append(repr(value).encode())
    assert packet.read_all() == b"", "bytes behind the last value"
    return tuple(values)
