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

from tests.integration.scatter import ComparedCluster, Tally, ask


pytestmark = [pytest.mark.db, pytest.mark.slow]

STATEMENTS = int(os.environ.get("SCATTER_QUERIES", "360"))
SEED = int(os.environ.get("SCATTER_SEED", "1"))
STATEMENTS_PER_HISTORY = 60
TABLES = ("t", "u", "r")
IDS = 14
# The same words for one of many shards and for one server; what is refused is no difference.
UNSUPPORTED = 1235


class WriteAuthor:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.savepoints: list[str] = []
        self.in_transaction = False

    def number(self) -> str:
        return str(self.dice.randrange(IDS))

    def value(self) -> str:
        return self.dice.choice((self.number(), self.number(), "NULL"))

    def target(self) -> str:
        return self.dice.choice(("t", "t", "t", "u", "u", "r"))

    def statement(self) -> str:
        dice = self.dice
        match dice.randrange(20):
            case 0 | 1 if not self.in_transaction:
                self.in_transaction = True
                return dice.choice(("BEGIN", "START TRANSACTION"))
            case 0 | 1:
                return self.end()
            case 2 if self.in_transaction:
                return self.savepoint()
            case 3 | 4 | 5 | 6:
                return self.insert()
            case 7 | 8 | 9:
                return self.insert_select()
            case 10 | 11 | 12 | 13:
                return self.update()
            case 14 | 15:
                return self.joined_write()
            case _:
                return self.delete()

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

    # --- one table --------------------------------------------------------------------------

    def verb(self) -> tuple[str, str]:
        """Return how to insert, and what to do about duplicates."""
        dice = self.dice
        match dice.randrange(6):
            case 0:
                return "INSERT IGNORE", ""
            case 1:
                return "REPLACE", ""
            case 2:
                change = dice.choice(
                    ("k = k + 1", "v = VALUES(v)", "k = VALUES(k), v = 1", "id = VALUES(id)")
                )
                return "INSERT", f" ON DUPLICATE KEY UPDATE {change}"
            case _:
                return "INSERT", ""

    def insert(self) -> str:
        verb, duplicates = self.verb()
        rows = [
            f"({self.number()}, {self.dice.choice((self.number(), 'NULL', '7'))}, {self.value()})"
            if self.dice.random() < 0.1
            else f"({self.number()}, {self.number()}, {self.value()})"
            for _ in range(self.dice.choice((1, 1, 2, 3, 6)))
        ]
        return f"{verb} INTO {self.target()} (id, k, v) VALUES {', '.join(rows)}{duplicates}"

    def condition(self, alias: str) -> str:
        dice = self.dice
        match dice.randrange(9):
            case 0 | 1:
                return f"{alias}.id = {self.number()}"
            case 2:
                return f"{alias}.id IN ({self.number()}, {self.number()}, {self.number()})"
            case 3:
                return f"{alias}.v IS {dice.choice(('', 'NOT '))}NULL"
            case 4:
                return f"({alias}.id = {self.number()} OR {alias}.k = {self.number()})"
            case 5:
                other, item = dice.choice(TABLES), dice.choice(("id", "id", "k"))
                inner = f" WHERE z.k > {self.number()}" if dice.random() < 0.5 else ""
                negation = dice.choice(("", "NOT "))
                return f"{alias}.id {negation}IN (SELECT z.{item} FROM {other} z{inner})"
            case 6:
                other, negation = dice.choice(TABLES), dice.choice(("", "NOT "))
                return f"{negation}EXISTS (SELECT 1 FROM {other} z WHERE z.id = {alias}.id)"
            case _:
                return f"{alias}.{dice.choice(('id', 'k', 'v'))} < {self.number()}"

    def where(self, alias: str) -> str:
        found = [self.condition(alias)]
        while self.dice.random() < 0.3:
            found.append(self.condition(alias))
        return " AND ".join(found)

    def assignment(self, alias: str) -> str:
        return self.dice.choice(
            (
                f"{alias}.k = {self.number()}",
                f"{alias}.k = {alias}.k + 1",
                f"{alias}.v = {self.value()}",
                f"{alias}.v = {alias}.id * 200000000",  # Too large for some rows only.
                f"{alias}.k = {alias}.v",  # NULL for some rows only.
                f"{alias}.id = {self.number()}",
            )
        )

    def update(self) -> str:
        table = self.target()
        limit = " ORDER BY id LIMIT 2" if self.dice.random() < 0.1 else ""
        return f"UPDATE {table} SET {self.assignment(table)} WHERE {self.where(table)}{limit}"

    def delete(self) -> str:
        table = self.target()
        if self.dice.random() < 0.1:
            return f"DELETE FROM {table} WHERE {table}.id = {self.number()} LIMIT 1"
        if self.dice.random() < 0.2:
            # With fewer than there may be, which rows go is any server's own choice.
            return f"DELETE FROM {table} WHERE {self.where(table)} LIMIT {IDS}"
        return f"DELETE FROM {table} WHERE {self.where(table)}"

    # --- several ----------------------------------------------------------------------------

    def insert_select(self) -> str:
        dice = self.dice
        verb, duplicates = self.verb()
        # MariaDB and MySQL take `k` of a SELECT's table for ambiguous here.
        duplicates = duplicates.replace("= k + 1", "= VALUES(k) + 1")
        table = self.target()
        source = dice.choice(TABLES)
        items = dice.choice(
            ("a.id, a.k, a.v", "a.id, a.k, a.v", "a.id, 3, a.k", "a.k, a.id, a.v")
        )
        match dice.randrange(6):
            case 0:
                body = f"SELECT {self.number()}, a.k, a.v FROM {source} a WHERE a.id = 1"
            case 1:
                body = (
                    f"SELECT a.id, COUNT(*), MAX(b.v) FROM {source} a JOIN {dice.choice(TABLES)} b"
                    f" ON b.id = a.id WHERE {self.where('a')} GROUP BY a.id"
                )
            case 2:
                body = (
                    f"SELECT a.id, b.k, b.v FROM {source} a LEFT JOIN {dice.choice(TABLES)} b"
                    f" ON b.id = a.id WHERE {self.where('a')}"
                )
            case 3:
                body = f"SELECT a.id, COUNT(*), 0 FROM {source} a WHERE a.id = {self.number()}"
            case 4:
                body = f"SELECT a.k + 3, COUNT(*), MAX(a.v) FROM {source} a GROUP BY a.k"
            case _:
                # In this order, for the last row of a key is the one that stays.
                body = f"SELECT {items} FROM {source} a WHERE {self.where('a')} ORDER BY a.id"
        return f"{verb} INTO {table} (id, k, v) {body}{duplicates}"

    def joined_write(self) -> str:
        dice = self.dice
        one, other = self.target(), dice.choice(TABLES)
        tie = dice.choice(("b.id = a.id", "b.id = a.id", "b.id = a.id", "b.k = a.id"))
        left = dice.choice(("", "LEFT "))
        where = dice.choice((self.where("a"), "b.id IS NULL", f"b.k > {self.number()}"))
        if dice.random() < 0.5:
            return f"DELETE a FROM {one} a {left}JOIN {other} b ON {tie} WHERE {where}"
        # A row with several partners may be set to any of them: only its own values are exact.
        value = "b.k" if tie == "b.id = a.id" and not left else "a.k + 1"
        return f"UPDATE {one} a {left}JOIN {other} b ON {tie} SET a.k = {value} WHERE {where}"


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
            if mine[1] == UNSUPPORTED:
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
