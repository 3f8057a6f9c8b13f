"""Random writes over 2, 3 and 8 shards change what they change on one server, or are refused.

SCATTER_QUERIES sets how many (per kind of server), SCATTER_SEED which. A history is a chain of
statements, in and out of transactions; what the proxy refuses must leave no trace, so it is not
run on the one server. After each statement the counts are compared, after each end of a
transaction the rows. A difference becomes a test of test_scatter.py.
"""

import os
import random
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection

from tests.integration.forms import Forms
from tests.integration.scatter import ComparedCluster, Tally, ask


pytestmark = [pytest.mark.db, pytest.mark.slow]

STATEMENTS = int(os.environ.get("SCATTER_QUERIES", "360"))
SEED = int(os.environ.get("SCATTER_SEED", "1"))
STATEMENTS_PER_HISTORY = 60
TABLES = ("t", "u", "r")
IDS = 14
# The same words for one of many shards and for one server; what is refused is no difference.
UNSUPPORTED = 1235
FORMS = {
    "number": tuple(map(str, range(IDS))),
    "value": ("{number}", "{number}", "NULL"),
    "target": ("t", "t", "t", "u", "u", "r"),
    "any": TABLES,
    "column": ("id", "k", "v"),
    "key": ("id", "id", "k"),
    "not": ("", "NOT "),
    "left": ("", "LEFT "),
    "change": ("k = VALUES(k), v = 1", "k = k + 1", "v = VALUES(v)", "id = VALUES(id)"),
    "row": (*["({number}, {number}, {value})"] * 28, "({number}, NULL, {value})", "({number}, 7, {value})"),
    # Of the table {a}.
    "condition": (
        "{a}.id = {number}", "{a}.id = {number}", "{a}.id IN ({number}, {number}, {number})", "{a}.v IS {not}NULL",
        "({a}.id = {number} OR {a}.k = {number})", "{a}.id {not}IN (SELECT z.{key} FROM {any} z{inner})",
        "{not}EXISTS (SELECT 1 FROM {any} z WHERE z.id = {a}.id)", "{a}.{column} < {number}", "{a}.{column} < {number}",
    ),
    "inner": ("", " WHERE z.k > {number}"),
    "where": ("{condition}", "{condition}", "{condition} AND {where}"),
    "assignment": (
        "{a}.k = {number}", "{a}.k = {a}.k + 1", "{a}.v = {value}", "{a}.id = {number}",
        "{a}.v = {a}.id * 200000000",  # Too large for some rows only.
        "{a}.k = {a}.v",  # NULL for some rows only.
    ),
    "update": (
        *["UPDATE {a} SET {assignment} WHERE {where}"] * 9,
        "UPDATE {a} SET {assignment} WHERE {where} ORDER BY id LIMIT 2",
    ),
    "delete": (
        *["DELETE FROM {a} WHERE {where}"] * 7, "DELETE FROM {a} WHERE {a}.id = {number} LIMIT 1",
        # With fewer than there may be, which rows go is any server's own choice.
        *[f"DELETE FROM {{a}} WHERE {{where}} LIMIT {IDS}"] * 2,
    ),
    "items": ("a.id, a.k, a.v", "a.id, a.k, a.v", "a.id, 3, a.k", "a.k, a.id, a.v"),
    "query": (
        "SELECT {number}, a.k, a.v FROM {any} a WHERE a.id = 1",
        "SELECT a.id, COUNT(*), MAX(b.v) FROM {any} a JOIN {any} b ON b.id = a.id WHERE {where} GROUP BY a.id",
        "SELECT a.id, b.k, b.v FROM {any} a LEFT JOIN {any} b ON b.id = a.id WHERE {where}",
        "SELECT a.id, COUNT(*), 0 FROM {any} a WHERE a.id = {number}",
        "SELECT a.k + 3, COUNT(*), MAX(a.v) FROM {any} a GROUP BY a.k",
        # In this order, for the last row of a key is the one that stays.
        "SELECT {items} FROM {any} a WHERE {where} ORDER BY a.id",
    ),
    "tie": ("b.id = a.id", "b.id = a.id", "b.id = a.id", "b.k = a.id"),
    "joined": ("{where}", "b.id IS NULL", "b.k > {number}"),
    "joined_write": (
        *["DELETE a FROM {target} a {left}JOIN {any} b ON {tie} WHERE {joined}"] * 2,
        # A row with several partners may be set to any of them: only its own values are exact.
        "UPDATE {target} a {left}JOIN {any} b ON {tie} SET a.k = a.k + 1 WHERE {joined}",
        "UPDATE {target} a JOIN {any} b ON b.id = a.id SET a.k = b.k WHERE {joined}",
    ),
}  # fmt: skip
DUPLICATES = " ON DUPLICATE KEY UPDATE {change}"
VERBS = (("INSERT IGNORE", ""), ("REPLACE", ""), ("INSERT", DUPLICATES), *[("INSERT", "")] * 3)


class WriteAuthor(Forms):
    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice, FORMS)
        self.savepoints: list[str] = []
        self.in_transaction = False

    def statement(self) -> str:
        first, second = self.begin, self.delete
        if self.in_transaction:
            first, second = self.end, self.savepoint
        makers = (first, second, self.insert, self.insert_select, self.update, self.delete, self.joined_write)  # fmt: skip
        (make,) = self.dice.choices(makers, (2, 1, 4, 3, 4, 4, 2))
        return make()

    def begin(self) -> str:
        self.in_transaction = True
        return self.dice.choice(("BEGIN", "START TRANSACTION"))

    def end(self) -> str:
        self.in_transaction = False
        self.savepoints.clear()
        return self.dice.choice(("COMMIT", "COMMIT", "ROLLBACK"))

    def savepoint(self) -> str:
        dice = self.dice
        if self.savepoints and dice.random() < 0.6:
            name = dice.choice(self.savepoints)
            index = self.savepoints.index(name)
            if dice.random() < 0.7:
                del self.savepoints[index + 1 :]
                return f"ROLLBACK TO {name}"
            del self.savepoints[index:]
            return f"RELEASE SAVEPOINT {name}"
        name = f"s{len(self.savepoints)}"
        self.savepoints.append(name)
        return f"SAVEPOINT {name}"

    def update(self) -> str:
        return self.say("update", a=self.say("target"))

    def delete(self) -> str:
        return self.say("delete", a=self.say("target"))

    def joined_write(self) -> str:
        return self.say("joined_write", a="a")

    def insert(self) -> str:
        verb, duplicates = self.dice.choice(VERBS)
        rows = ", ".join(["{row}"] * self.dice.choice((1, 1, 2, 3, 6)))
        return self.fill(f"{verb} INTO {{target}} (id, k, v) VALUES {rows}{duplicates}")

    def insert_select(self) -> str:
        verb, duplicates = self.dice.choice(VERBS)
        sql = self.fill(f"{verb} INTO {{target}} (id, k, v) {{query}}{duplicates}", a="a")
        # MariaDB and MySQL take `k` of a SELECT's table for ambiguous here.
        return sql.replace("= k + 1", "= VALUES(k) + 1")


def write(connection: "Connection[Any]", sql: str) -> tuple[int, int, str]:
    """Run *sql* and return the affected rows, and the error's code and words, if there is one."""
    try:
        with connection.cursor() as cursor:
            return cursor.execute(sql), 0, ""
    except pymysql.MySQLError as error:
        return 0, int(error.args[0]), str(error.args[1])


def fill(compared: ComparedCluster, dice: random.Random) -> None:
    """Make tables whose rows a CHECK and a NOT NULL keep some changes from."""
    for table in TABLES:
        compared.create("id BIGINT PRIMARY KEY, k INT NOT NULL CHECK (k < 40), v INT", table)
        ids = sorted(dice.sample(range(IDS), dice.choice((3, 8, IDS))))
        rows = [[str(n), str(dice.randrange(6)), dice.choice(("NULL", "3"))] for n in ids]
        compared.insert(("id", "k", "v"), rows, table)


def contents(connection: "Connection[Any]") -> list[Any]:
    return [ask(connection, f"SELECT * FROM {table} ORDER BY id").rows for table in TABLES]


def test_every_write_does_what_it_does_on_one_server_or_is_refused(compared):
    tally = Tally()
    found: list[str] = []
    for number in range(max(1, STATEMENTS // STATEMENTS_PER_HISTORY)):
        seed = SEED * 1_000_000 + number
        dice = random.Random(seed)
        fill(compared, dice)
        author = WriteAuthor(dice)
        shards = dice.choice(tuple(compared.spread))
        spread, direct = compared.spread[shards], compared.direct
        history: list[str] = []
        for step in range(STATEMENTS_PER_HISTORY):
            is_last = step == STATEMENTS_PER_HISTORY - 1
            sql = author.end() if is_last and author.in_transaction else author.statement()
            kind = sql.split()[0]
            tally.asked[kind] += 1
            mine = write(spread, sql)
            # A server makes a value of a NULL with IGNORE, which may belong to another shard.
            if mine[1] == UNSUPPORTED or ("IGNORE" in sql and "is sharded by it" in mine[2]):
                tally.refuse(kind, mine[2])
                continue
            history.append(sql)
            theirs = write(direct, sql)
            # Of several mistakes another one may be found first.
            same = mine[:2] == theirs[:2] or (mine[1] and theirs[1])
            difference = "" if same else f"(rows, error) {mine} instead of {theirs}"
            if not difference and contents(spread) != contents(direct):
                difference = f"rows {contents(spread)} instead of {contents(direct)}"
            if difference:
                found.append(f"history {seed}, {shards} shards: {history}\n    {difference}")
                for connection in (spread, direct):
                    connection.rollback()
                break
    # Copies of reference tables are not written, nor is what moves rows by subqueries in a transaction.
    tally.close(found, INSERT=0.6, REPLACE=0.6, UPDATE=0.7, DELETE=0.6)
