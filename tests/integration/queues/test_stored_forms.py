"""Ids of every type over two shards: what one spelling writes, others find and acknowledge, or are refused, as on one server."""

import os
import random
from uuid import UUID

import pymysql
import pytest
from pymysql.converters import escape_string

from streamfrom.proxy.embedded.servers import Family
from streamfrom.sqlparse_ext.stored_forms import ColumnType, folds_case, stored_form
from tests.fixtures.database_servers import root
from tests.fixtures.streams import message_table, run


SEED = int(os.environ.get("SCATTER_SEED", "1"))
VALUES = int(os.environ.get("STORED_VALUES", "5"))  # of each type
REFUSED = {1235, 1366}
LETTERS = "aAbBéÉßµ 0-_~'\"\\"


def quoted(text: str) -> str:
    return f"'{escape_string(text)}'"


def number(dice: random.Random) -> list[str]:
    value = dice.randrange(-128, 128)
    hexed = [f"0x{value:02x}", f"x'{value:02x}'", f"b'{value:b}'"] if value >= 0 else []
    return [str(value), f"'{value}'", f"' {value}.0 '", f"{value}.0", f"'{value}e0'", *hexed]


def wide(dice: random.Random) -> list[str]:
    bounds = [str(dice.choice([-(2**63), 2**63 - 1]) + step) for step in (-1, 0, 1)]
    return [*number(dice), *bounds, quoted(bounds[1])]


def decimal(dice: random.Random) -> list[str]:
    whole, cents = dice.randrange(100), dice.randrange(100)
    return [
        f"{whole}.{cents:02}", f"'0{whole}.{cents:02}0'", f"{whole}.{cents:02}4", f"{whole}{cents:02}e-2", str(whole),
    ]  # fmt: skip


def text(dice: random.Random) -> list[str]:
    value = "".join(dice.choice(LETTERS) for _ in range(dice.randrange(1, 5)))
    spellings = [value, value.swapcase(), value + " ", value.rstrip(), " " + value]
    return [*map(quoted, spellings), f"x'{value.encode().hex()}'", str(dice.randrange(9))]


def octets(dice: random.Random) -> list[str]:
    digits = dice.randbytes(dice.randrange(1, 5)).hex()
    return [f"x'{digits}'", f"0x{digits}", f"x'{digits}00'", "'ab'", "'ab '", "7"]


def uuid(dice: random.Random) -> list[str]:
    digits = f"{dice.getrandbits(128):032x}"
    written = str(UUID(digits))
    return [f"'{written}'", f"'{written.upper()}'", f"'{digits}'", f"x'{digits}'"]


def address(dice: random.Random) -> list[str]:
    low = dice.randrange(1, 1 << 16)
    short, long = f"2001:db8::{low:x}", f"2001:db8:0:0:0:0:0:{low:04x}"
    return [f"'{each}'" for each in (short, short.upper(), long, f"::ffff:1.2.3.{low % 256}")]


def date(dice: random.Random) -> list[str]:
    month, day = dice.randrange(1, 13), dice.randrange(1, 29)
    digits = f"2024{month:02}{day:02}"
    return [f"'2024-{month:02}-{day:02}'", f"'{digits}'", digits, f"'2024-{month}-{day}'"]


def moment(dice: random.Random) -> list[str]:
    at = f"2024-02-03 04:05:{dice.randrange(60):02}"
    return [f"'{at}'", f"'{at.replace(' ', 'T')}'", f"'{at}.0'", "'2024-02-03'"]


def member(dice: random.Random) -> list[str]:
    forms = ["'a'", "'A'", "'a '", "1"], ["'b''c'", "'B''C'", "2"], ["'2'", "3", "'3'"]
    return dice.choice(forms)


BIN = "COLLATE utf8mb4_bin"
TYPES = {
    "BIGINT": wide,
    "TINYINT": number,
    "INT UNSIGNED": number,
    "DECIMAL(10,2)": decimal,
    "DECIMAL(20,0)": number,
    "CHAR(4)": text,
    f"CHAR(4) {BIN}": text,
    "VARCHAR(20)": text,
    f"VARCHAR(3) {BIN}": text,
    "VARCHAR(20) CHARACTER SET latin1": text,
    "BINARY(4)": octets,
    "VARBINARY(4)": octets,
    "DATE": date,
    "DATETIME": moment,
    "ENUM('a','b''c','2')": member,
    "UUID": uuid,
    "INET6": address,
}


def outcome(connection, sql):
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql)
        except pymysql.MySQLError as error:
            return error.args[0]
        return sorted(cursor.fetchall()) if cursor.description else cursor.rowcount


@pytest.mark.parametrize("kind", TYPES)
def test_an_id_is_one_row_however_it_is_spelled(cluster, family, kind):
    if kind in ("UUID", "INET6") and family is Family.MYSQL:
        pytest.skip("a type of MariaDB")
    dice = random.Random(f"{SEED} {kind}")
    spread = cluster.proxy.connect(database="commerce", autocommit=True)
    single = cluster.proxy.connect(database="plain", autocommit=True)
    for connection in (spread, single):
        run(connection, f"CREATE QUEUE forms (id {kind}) WITH (ack_wait = 60)")
    spellings = [one for _ in range(VALUES) for one in TYPES[kind](dice)]
    dice.shuffle(spellings)
    written = 0
    for one in spellings:
        sql = f"INSERT INTO forms (id) VALUES ({one})"
        found = outcome(spread, sql)
        if found not in REFUSED:
            assert outcome(single, sql) == found, sql
            written += found == 1
    assert written
    rows = outcome(single, "SELECT id FROM forms")
    assert outcome(spread, "SELECT id FROM forms") == rows
    for one in spellings:
        for sql in (
            f"SELECT id FROM forms WHERE id = {one}",
            f"SELECT id FROM forms WHERE id IN ({one}, {one})",
        ):
            assert outcome(spread, sql) == outcome(single, sql), sql
    sent = outcome(spread, f"STREAM id FROM forms LIMIT {written} WAIT 60")
    assert sent == rows
    for (ident,) in sent:
        shown = f"x'{ident.hex()}'" if isinstance(ident, bytes) else quoted(str(ident))
        ack = f"UPDATE forms SET time_acked = NOW() WHERE id = {shown}"
        assert outcome(spread, ack) == 1, ack


@pytest.mark.parametrize("kind", ["FLOAT", "REAL", "DOUBLE PRECISION", "BIT(8)"])
def test_an_id_that_is_not_found_again_is_refused(client, keyspace, kind):
    unplaced, unfound = "cannot be placed", "id must be of a type whose values are found again"
    with pytest.raises(
        pymysql.MySQLError, match=unplaced if keyspace == "commerce" else unfound
    ):
        run(client, f"CREATE QUEUE odd (id {kind})")
    if keyspace == "plain":
        run(client, message_table("odd", ident=f"id {kind}"))
        with pytest.raises(pymysql.MySQLError, match=unfound):
            run(client, "STREAM * FROM odd")


def test_literals_beside_an_ordinary_table_s_numbers_are_what_they_are_to_the_server(cluster):
    spread = cluster.proxy.connect(database="commerce", autocommit=True)
    single = cluster.proxy.connect(database="plain", autocommit=True)
    statements = [
        "INSERT INTO customer VALUES (57, 1), (9, 2), (0x0a, 3)",
        *(f"SELECT n FROM customer WHERE id = {one}" for one in ("0x39", "x'39'", "b'111001'", "'057'", "'57.0'", "57.0", "_latin1 0x39")),
        "UPDATE customer SET n = n + 1 WHERE id = 0x39",
        "DELETE FROM customer WHERE id IN (0x39, b'1010')",
        "SELECT id, n FROM customer",
    ]  # fmt: skip
    for connection in (spread, single):
        run(connection, "CREATE TABLE customer (id BIGINT PRIMARY KEY, n INT)")
    for sql in statements:
        assert outcome(spread, sql) == outcome(single, sql), sql


# Between 32 and 126; other characters are not placed by the collations that this is about.
ASCII = "".join(map(chr, range(33, 127)))


def test_collations_of_which_case_is_all_find_no_other_ascii_equal(server, database):
    connection = root(server, database=database)
    known = [
        name
        for name, charset in outcome(
            connection, "SELECT collation_name, character_set_name FROM information_schema.collations"
            " WHERE character_set_name IN ('utf8mb4', 'utf8mb3', 'latin1', 'ascii')",
        )
        if folds_case(column := ColumnType("varchar(9)", name)) and not stored_form(column, folds=True).fault
    ]  # fmt: skip
    assert "utf8mb4_general_ci" in known
    for name in known:
        charset = name.partition("_")[0]
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS signs")
            cursor.execute(f"CREATE TABLE signs (c CHAR(2) CHARSET {charset} COLLATE {name})")
            cursor.executemany("INSERT INTO signs VALUES (%s)", [(sign,) for sign in ASCII])
            cursor.execute("SELECT a.c, b.c FROM signs a JOIN signs b ON a.c = b.c")
            equal = cursor.fetchall()
        assert len(equal) >= len(ASCII)
        assert all(one.lower() == other.lower() for one, other in equal), name
