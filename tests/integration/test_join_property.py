"""Random joins, subqueries and unions over 2, 3 and 8 shards, answered as by one server or refused.

SCATTER_QUERIES sets how many (per kind of server), SCATTER_SEED which. `t` and `u` are sharded by
their id, `r` is on every shard. A difference becomes a test of test_scatter.py.
"""

import os
import random
import re

import pytest

from tests.integration.forms import Forms
from tests.integration.scatter import ComparedCluster, Tally, ask, differences


pytestmark = [pytest.mark.db, pytest.mark.slow]

QUERIES = int(os.environ.get("SCATTER_QUERIES", "450"))
SEED = int(os.environ.get("SCATTER_SEED", "1"))
QUERIES_PER_FILLING = 150
TABLES = ("t", "u", "r")
COLUMNS = ("id", "k", "v")
IDS = 14
FORMS = {
    "number": tuple(map(str, range(IDS))),
    "any": TABLES,
    "more": ("t", "t", "u", "u", "r"),
    "column": ("id", "id", "k", "v"),
    "output": COLUMNS,
    "not": ("", "", "NOT "),
    "distinct": ("", "", "DISTINCT "),
    # Of the alias {x}: alone, with another one, {o}, and of a table that {o} is outside of.
    "own": (
        "{x}.id = {number}", "{x}.id IN ({number}, {number})", "({x}.k > {number} OR {x}.id = {number})",
        "{x}.v IS NULL", "{x}.v IS NOT NULL", *["{x}.{column} < {number}"] * 2,
    ),
    "tied": (*["{x}.id = {o}.id"] * 3, "{o}.{column} = {x}.{column}"),
    "subquery": (
        "{not}EXISTS (SELECT 1 FROM {any} {x} WHERE {tie}{one})",
        "{left} {not}IN (SELECT {x}.{column} FROM {any} {x}{maybe})",
        "{o}.k < (SELECT COUNT(*) FROM {any} {x} WHERE {tie} AND {x}.v > {number})",
        "{o}.k >= (SELECT MIN({x}.k) FROM {any} {x} WHERE {tie})",
    ),
    "tie": (*["{x}.id = {o}.id"] * 7, *["{own}"] * 3),
    "one": ("", " LIMIT 1"),
    "left": (*["{o}.id"] * 4, "{o}.{column}"),
    "maybe": ("", " WHERE {own}"),
    # A derived table with the columns of {table}.
    "derived": (
        "(SELECT {x}.id, COUNT(*) AS k, MAX({x}.v) AS v FROM {table} {x}{where} GROUP BY {x}.id)",
        "(SELECT id, COUNT(*) AS k, MAX({x}.k) AS v FROM {table} {x}{where} GROUP BY id HAVING k > 0)",
        "(SELECT {x}.id, {x}.k, SUM({x}.v) AS v FROM {table} {x}{where} GROUP BY {x}.k, {x}.id)",
        "(SELECT {x}.k AS id, COUNT(*) AS k, MIN({x}.v) AS v FROM {table} {x}{where} GROUP BY {x}.k)",
        "(SELECT DISTINCT {x}.id, {x}.k, {x}.v FROM {table} {x}{where})",
        "(SELECT DISTINCT {x}.k AS id, {x}.k, {x}.v FROM {table} {x}{where})",
        "(SELECT {x}.id, {x}.k, {x}.v FROM {table} {x}{where})",
        "(SELECT id, k, v FROM {table} {x}{where})", "(SELECT * FROM {table} {x}{where})",
        "(SELECT id, k, v FROM {table} {x}{where} ORDER BY id LIMIT 4)",
        "(SELECT MAX(id) AS id, COUNT(*) AS k, 1 AS v FROM {table} {x}{where})",
        "(SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS k, v FROM {table} {x}{where})",
    ),
    "joined": (
        " JOIN {table} {x} USING (id)", " LEFT JOIN {table} {x} USING (id)", " RIGHT JOIN {table} {x} USING (id)",
        *[", {table} {x}"] * 2, *[" {join} {table} {x} ON {on}"] * 20,
    ),
    "join": ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"),
    "with_": ("WITH {o} AS (SELECT id, k FROM {any} {x}{where}) SELECT id, k FROM {o}",),
    "of_joined": (
        "SELECT d.a, d.b FROM (SELECT {distinct}{key} AS a, {one_of}.k AS b FROM {source}) d{big} ORDER BY d.a, d.b",
        "SELECT d.a, d.b FROM (SELECT {key} AS a, COUNT(*) AS b FROM {source} GROUP BY {key}) d{big} ORDER BY d.a, d.b",
    ),
    "big": ("", " WHERE d.b > 1"),
    "words": ("UNION ALL", "UNION ALL", "UNION", "UNION", "EXCEPT", "INTERSECT"),
    "item": ("(SELECT {counted} FROM {any} {x} WHERE {x}.id = {o}.id{one}) AS s",),
    "counted": ("COUNT(*)", "MAX(k)", "{x}.k"),
    "aggregate": (
        "COUNT(*)", "SUM({x}.k)", "MIN({x}.v)", "COUNT(DISTINCT {x}.k)", "STD({x}.v) > 1",
        "GROUP_CONCAT({x}.k ORDER BY {x}.k DESC)",
    ),
    "grouped": (
        *["SELECT {aggregate} AS m FROM {source}"] * 2,
        *["SELECT {group}, {aggregate} AS m FROM {source} GROUP BY {group}{having}{order}"] * 3,
    ),
    "having": ("", "", " HAVING COUNT(*) > 1"),
    "order": ("", "", " ORDER BY {group}", " WITH ROLLUP"),
}  # fmt: skip


class JoinAuthor(Forms):
    """Writes queries. Every table has the columns id, k and v; some are tied, some are not."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice, FORMS)
        self.aliases = 0

    def alias(self) -> str:
        self.aliases += 1
        return f"x{self.aliases}"

    def condition(self, alias: str, others: list[str]) -> str:
        """Return a condition on *alias*, often one that ties it."""
        dice = self.dice
        if not others or dice.random() < 0.5:
            return self.say("own", x=alias)
        if dice.random() < 0.2:
            return self.say("subquery", x=self.alias(), o=dice.choice([alias, *others]))
        return self.say("tied", x=alias, o=dice.choice(others))

    def where(self, aliases: list[str]) -> str:
        found = []
        while self.dice.random() < 0.55:
            alias = self.dice.choice(aliases)
            found.append(self.condition(alias, [other for other in aliases if other != alias]))
        word = " OR " if self.dice.random() < 0.15 else " AND "
        return " WHERE " + word.join(found) if found else ""

    def factor(self, table: str) -> str:
        """Return a table, or a derived table with the columns of one."""
        if self.dice.random() < 0.8:
            return table
        x = self.alias()
        return self.say("derived", table=table, x=x, where=self.where([x]))

    def source(self) -> tuple[str, list[str]]:
        """Return a FROM and its aliases."""
        dice = self.dice
        aliases = [self.alias()]
        text = f"{self.factor(dice.choice('ttur'))} {aliases[0]}"
        for _ in range(dice.choice((0, 1, 1, 1, 2))):
            table, x = self.factor(dice.choice(TABLES)), self.alias()
            on = f"{x}.id = {dice.choice(aliases)}.id"
            if dice.random() < 0.3:
                on = self.condition(x, aliases)
            if dice.random() < 0.3:
                on += f" AND {self.condition(dice.choice([x, *aliases]), [])}"
            text += self.say("joined", table=table, x=x, on=on)
            aliases.append(x)
        return text, aliases

    def select(self) -> tuple[str, str]:
        makers = (self.union, self.with_, self.derived, self.counted, self.grouped, self.rows)
        (make,) = self.dice.choices(makers, (2, 1, 1, 2, 2, 5))
        return make.__name__, make()

    def with_(self) -> str:
        x = self.alias()
        return self.say("with_", x=x, o=self.alias(), where=self.where([x]))

    def derived(self) -> str:
        if self.dice.random() < 0.5:
            text, aliases = self.source()
            one_of, other = self.dice.choice(aliases), self.dice.choice(aliases)
            source = text + self.where(aliases)
            return self.say("of_joined", key=f"{one_of}.id", one_of=other, source=source)
        x, o, inner = self.alias(), self.alias(), self.alias()
        given = {"x": x, "o": o, "inner": inner, "of_inner": self.where([inner])}
        return self.fill(
            "SELECT {o}.id, {x}.k FROM {any} {o} JOIN (SELECT id, k FROM {any} {inner}{of_inner})"
            " {x} ON {x}.id = {o}.id{where}",
            **given,
            where=self.where([o]),
        )

    def counted(self) -> str:
        """Return the count of what another query gives, as paginators ask for it."""
        make = self.dice.choice((self.union, self.grouped, self.rows, self.derived))
        return f"SELECT COUNT(*) FROM ({make()}) AS anon_1"

    def union(self) -> str:
        dice = self.dice
        columns = dice.choice((("id", "k"), ("id", "k"), ("k",), ("k", "v"), ("v", "id")))
        sql = self.part(columns)
        for _ in range(dice.choice((1, 1, 2))):
            sql += f" {self.say('words')} {self.part(columns)}"
        names = ", ".join(f"{name}{dice.choice(('', ' DESC'))}" for name in columns)
        places = ", ".join(map(str, range(1, len(columns) + 1)))
        limited = f" ORDER BY {places} LIMIT {dice.randrange(9)}, 5"
        return sql + dice.choice((f" ORDER BY {names}", limited, "", ""))

    def part(self, columns: tuple[str, ...]) -> str:
        """Return one SELECT of a UNION: of a table, of a join, or of none."""
        dice = self.dice
        if dice.random() < 0.05:
            return self.fill("SELECT " + ", ".join(f"{{number}} AS {name}" for name in columns))
        x = self.alias()
        source, aliases = self.say("more") + f" {x}", [x]
        if dice.random() < 0.2:
            source, aliases = self.source()
        items = [
            f"{dice.choice(aliases)}.{name if dice.random() < 0.9 else 'k'} AS {name}"
            for name in columns
        ]
        sql = f"SELECT {self.say('distinct')}{', '.join(items)} FROM {source}{self.where(aliases)}"
        return f"({sql})" if dice.random() < 0.2 else sql

    def rows(self) -> str:
        dice = self.dice
        text, aliases = self.source()
        items = [f"{alias}.{self.say('output')} AS c{i}" for i, alias in enumerate(aliases)]
        names = [f"c{i}" for i in range(len(aliases))]
        if dice.random() < 0.15:
            items, names = ["*"], []
        elif dice.random() < 0.15:
            items.append(self.say("item", x=self.alias(), o=dice.choice(aliases)))
            names.append("s")
        sql = (
            f"SELECT {self.say('distinct')}{', '.join(items)} FROM {text}{self.where(aliases)}"
        )
        direction = dice.choice(("", " DESC"))
        if "DISTINCT" not in sql:
            names = [f"{alias}.{name}" for alias in aliases for name in COLUMNS]
        if names and dice.random() < 0.5:
            sql += f" ORDER BY {', '.join(name + direction for name in names)}"
            sql += dice.choice(("", " LIMIT 3", " LIMIT 2 OFFSET 2"))
        return sql

    def grouped(self) -> str:
        text, aliases = self.source()
        x, o = self.dice.choice(aliases), self.dice.choice(aliases)
        group = f"{o}.{self.say('output')}"
        return self.say("grouped", x=x, group=group, source=text + self.where(aliases))


def is_sorted(sql: str) -> bool:
    """Whether the answer has an order: that of what stands in parentheses is none."""
    while (outside := re.sub(r"\([^()]*\)", "", sql)) != sql:
        sql = outside
    return " ORDER BY " in sql


def fill(compared: ComparedCluster, dice: random.Random) -> None:
    for table in TABLES:
        compared.create("id BIGINT PRIMARY KEY, k INT NOT NULL, v INT", table)
        ids = sorted(dice.sample(range(IDS), dice.choice((0, 3, 8, IDS))))
        rows = [
            [str(n), str(dice.randrange(6)), dice.choice(("NULL", str(dice.randrange(4))))]
            for n in ids
        ]
        compared.insert(COLUMNS, rows, table)


def test_every_join_is_answered_as_by_one_server_or_refused(compared: ComparedCluster) -> None:
    tally = Tally()
    found: list[str] = []
    for number in range(max(1, QUERIES // QUERIES_PER_FILLING)):
        seed = SEED * 1_000_000 + number
        dice = random.Random(seed)
        fill(compared, dice)
        for _ in range(QUERIES_PER_FILLING):
            kind, sql = JoinAuthor(dice).select()
            prepared = dice.random() < 0.2
            theirs = ask(compared.direct, sql, prepared=prepared)
            shards = dice.choice(tuple(compared.spread))
            mine = ask(compared.spread[shards], sql, prepared=prepared)
            tally.asked[kind] += 1
            if mine.error is not None and mine.error[0] == 1235:
                tally.refuse(kind, mine.error[1])
                continue
            difference = differences(mine, theirs, types=False)
            if not difference and is_sorted(sql) and mine.rows != theirs.rows:
                difference = f"rows in the order {mine.rows} instead of {theirs.rows}"
            # Grouping by the key, MariaDB 10.11 counts equal values twice in the row of all groups.
            if difference and not re.search(r"\(DISTINCT .* WITH ROLLUP", sql):
                found.append(f"filling {seed}, {shards} shards: {sql}\n    {difference[:600]}")
    # Tables are joined that nothing ties; a WITH runs where a value says one shard.
    tally.close(found, union=0.55, with_=0.95, derived=0.8, counted=0.6, grouped=0.6, rows=0.6)
