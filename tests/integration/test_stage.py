"""Rows of every type, given back to their server as a stage: the same bytes, types and comparisons, or refused."""

from contextlib import suppress
from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.merge.stage import Stage, is_text
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.fixtures.database_servers import DatabaseServer, execute, root
from tests.integration.scatter import ask


pytestmark = pytest.mark.db

TEXTS = ("'ab '", "''", "'é'", "' a\\n\\t\\\"\\\\\\'x'", "'null'", "'[1]'", "'Ab'")
BYTES = ("x'00ff80c3'", "x'e9'", "'ab '", "''")
TYPES: dict[str, tuple[str, ...]] = {
    "TINYINT": ("-128", "127"),
    "BOOLEAN": ("1", "100"),
    "SMALLINT UNSIGNED": ("65535",),
    "MEDIUMINT": ("-8388608",),
    "INT": ("-2147483648", "0"),
    "INT UNSIGNED": ("4294967295",),
    "BIGINT": ("-9223372036854775808", "9223372036854775807"),
    "BIGINT UNSIGNED": ("18446744073709551615", "9223372036854775808"),
    "DECIMAL(65,30)": (
        "12345678901234567890123456789012345.123456789012345678901234567890",
        "-1e-30",
    ),
    "DECIMAL(65,0)": ("9" * 65, "-" + "9" * 65),
    "DECIMAL(10,2)": ("1.50", "-0.01"),
    "DOUBLE": (
        "0.1",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "123456789012345678",
    ),
    "DATE": ("'2024-02-29'", "'1000-01-01'", "'9999-12-31'"),
    "DATETIME": ("'2024-02-29 23:59:59'",),
    "DATETIME(6)": ("'2024-02-29 23:59:59.999999'", "'2024-01-01'"),
    "TIMESTAMP(3) NULL": ("'2024-02-29 23:59:59.123'",),
    "TIME": ("'-838:59:59'", "'12:00:00'"),
    "TIME(6)": ("'-00:00:00.000001'", "'838:59:58.999999'"),
    "YEAR": ("2024", "1901", "0"),
    "CHAR(9)": TEXTS,
    "VARCHAR(20)": (*TEXTS, "'😀'", "'\\0'"),
    "VARCHAR(16000)": ("repeat('é', 3000)",),
    "VARCHAR(20) CHARACTER SET latin1": (*TEXTS, "'€'"),
    "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin": TEXTS,
    "VARCHAR(20) CHARACTER SET utf8mb3": TEXTS,
    "VARCHAR(20) CHARACTER SET utf16": TEXTS,
    "VARCHAR(20) CHARACTER SET gbk": ("'中'",),
    "VARCHAR(20) COLLATE utf8mb4_bin": TEXTS,
    "VARCHAR(20) COLLATE utf8mb4_unicode_ci": (*TEXTS, "'ß'"),
    "TINYTEXT": TEXTS,
    "LONGTEXT": (*TEXTS, "repeat('x', 100000)"),
    "BINARY(4)": BYTES,
    "VARBINARY(20)": BYTES,
    "BLOB": BYTES,
    "LONGBLOB": BYTES,
}
OWN: dict[Family, dict[str, tuple[str, ...]]] = {
    Family.MARIADB: {
        "VARCHAR(20) COLLATE utf8mb4_nopad_bin": TEXTS,
        "CHAR(9) COLLATE utf8mb4_general_nopad_ci": TEXTS,
        "JSON": ('\'{"b": 1, "a": [1, 2.50]}\'',),
    },
    Family.MYSQL: {
        "VARCHAR(20) COLLATE utf8mb4_0900_ai_ci": TEXTS,
        "CHAR(9) COLLATE utf8mb4_0900_as_cs": TEXTS,
    },
}
REFUSED: dict[str, tuple[str, ...]] = {
    "FLOAT": ("0.1",),
    "DOUBLE(10,3)": ("1.2345",),
    "INT ZEROFILL": ("7",),
    "ENUM('b','a')": ("'a'",),
    "SET('b','a')": ("'b,a'",),
    "BIT(10)": ("5",),
    "POINT": ("POINT(1, 2)",),
}
REFUSED_OWN: dict[Family, dict[str, tuple[str, ...]]] = {
    Family.MARIADB: {"INET6": ("'::1'",), "UUID": ("'123e4567-e89b-12d3-a456-426614174000'",)},
    Family.MYSQL: {"JSON": ("'[1, 2]'",)},
}
MADE = (
    "HEX(v)",
    "HEX(WEIGHT_STRING(v))",
    "v + 0",
    "v * 1e0",
    "LENGTH(v)",
    "CONCAT(v, '|')",
    "COLLATION(v)",
)
# Of these only the way there is another type, for their bytes go as hexadecimal.
HEXED = {FieldType.BLOB, FieldType.STRING, FieldType.VAR_STRING}


@pytest.fixture
def reader(server: DatabaseServer, database: str) -> Any:
    """An account that has SELECT alone."""
    execute(server, f"CREATE USER '{database}'@'%' IDENTIFIED BY 'secret'")
    execute(server, f"GRANT SELECT ON {database}.* TO '{database}'@'%'")
    connection = root(server, user=database, password="secret", database=database)
    yield connection
    connection.close()
    execute(server, f"DROP USER '{database}'@'%'")


def create(server: DatabaseServer, database: str, types: dict[str, tuple[str, ...]]) -> None:
    for place, (kind, values) in enumerate(types.items()):
        rows = ", ".join(f"({n}, {value})" for n, value in enumerate([*values, "NULL"]))
        execute(server, f"CREATE TABLE {database}.t{place} (id INT PRIMARY KEY, v {kind})")
        execute(server, f"INSERT INTO {database}.t{place} VALUES {rows}")


def staged(reader: Any, table: str) -> tuple[ColumnDefinition, str]:
    """Return the definition of v, and the SELECT of id and v as a stage."""
    found = ask(reader, f"SELECT id, v FROM {table} ORDER BY id")
    assert found.error is None
    collation = ""
    if is_text(found.columns[1]):
        ((named,),) = ask(reader, f"SELECT COLLATION(MAX(v)) FROM {table}").rows
        collation = (named or b"").decode()
    stage = Stage(found.columns, ["", collation])
    return found.columns[1], stage.select([text_row(list(row)) for row in found.rows]).decode()


def test_what_comes_back_is_what_was_there(server: DatabaseServer, reader: Any) -> None:
    types = TYPES | OWN[server.family]
    create(server, reader.db.decode(), types)
    reader.query("START TRANSACTION READ ONLY")
    differences: list[Any] = []
    for place, kind in enumerate(types):
        column, text = staged(reader, f"t{place}")
        for made in ("v", *MADE):
            if column.type == FieldType.TIMESTAMP and made.startswith("v "):
                continue
            own = ask(reader, f"SELECT {made} FROM t{place} ORDER BY id")
            came = ask(reader, f"SELECT {made} FROM ({text}) AS s ORDER BY id")
            if (own.rows, own.error) != (came.rows, came.error):
                differences.append((kind, made, own.rows[:4], came.rows[:4], came.error))
            if made == "v" and not (column.type in HEXED or column.type == FieldType.TIMESTAMP):
                is_same = came.columns[0].type == column.type
                if not is_same or came.columns[0].decimals != column.decimals:
                    differences.append((kind, made, column, came.columns[0]))
    assert not differences


def test_types_whose_texts_are_not_all_of_their_values_are_refused(server, reader):
    types = REFUSED | REFUSED_OWN[server.family]
    create(server, reader.db.decode(), types)
    taken = []
    for place, kind in enumerate(types):
        with suppress(Unsupported):
            staged(reader, f"t{place}")
            taken.append(kind)
    assert not taken
