"""Random tables, and random queries of one of them, for `test_scatter_property`."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from streamfrom.proxy.embedded.servers import Family
from tests.integration.forms import Forms


WORDS = (
    "", "a", "A", "a ", "ä", "b", "B  ", "ab", "a b", "Zz", "zZ", "10", "9", "é", "a\\t", "😀",
)  # fmt: skip


@dataclass(frozen=True)
class Field:
    """A column: its definition, what it holds, and whether equal values may read differently."""

    name: str
    type: str
    kind: str  # int, decimal, float, string, time
    values: tuple[str, ...]
    folds: bool = False


def fields(dice: random.Random, family: Family) -> list[Field]:
    own = "utf8mb4_0900_ai_ci" if family is Family.MYSQL else "utf8mb4_unicode_nopad_ci"
    collations = (
        "utf8mb4_general_ci",
        "utf8mb4_bin",
        "utf8mb4_unicode_ci",
        "latin1_swedish_ci",
        own,
    )
    words = tuple(f"'{word}'" for word in WORDS)

    def string(name: str, kind: str) -> Field:
        sort = dice.choice(collations)
        charset = sort.partition("_")[0]
        values = words if charset == "utf8mb4" else tuple(set(words) - {"'😀'"})
        definition = f"{kind} CHARACTER SET {charset} COLLATE {sort}"
        return Field(name, definition, "string", tuple(sorted(values)), folds=True)

    return [
        Field("a", dice.choice(("INT", "TINYINT", "BIGINT", "SMALLINT")), "int",
              tuple(str(n) for n in range(-3, 6))),
        Field("u", "BIGINT UNSIGNED", "int", ("0", "1", "7", "18446744073709551615", "9223372036854775807")),
        Field("n", dice.choice(("DECIMAL(10,3)", "DECIMAL(30,0)", "DECIMAL(5,2)")), "decimal",
              ("0", "1.5", "-1.5", "2.25", "10", "9.99", "-0.01", "333")),
        Field("f", dice.choice(("DOUBLE", "FLOAT", "DOUBLE(12,3)")), "float",
              ("0", "0.1", "-2.5", "3.3333333333", "3.33333333334", "123456.789", "2", "1000000")),
        string("s", dice.choice(("VARCHAR(20)", "CHAR(10)", "TEXT"))),
        string("r", "VARCHAR(30)"),
        Field("v", "VARBINARY(10)", "bytes", ("'a'", "'A'", "x'00'", "'a '", "''", "x'ff61'")),
        Field("d", dice.choice(("DATE", "DATETIME", "DATETIME(3)", "TIMESTAMP NULL", "YEAR")), "time",
              ("20240101", "20231231", "20250228", "20240229")),
        Field("h", dice.choice(("TIME", "TIME(2)")), "time",
              ("'-10:00:00'", "'100:00:00'", "'99:59:59'", "'00:00:01'", "'-00:00:01'")),
        Field("e", "ENUM('z','a','M')", "enum", ("'z'", "'a'", "'M'")),
    ]  # fmt: skip


def literal(dice: random.Random, field: Field) -> str:
    return "NULL" if dice.random() < 0.15 else own_literal(field, dice.choice(field.values))


def own_literal(field: Field, value: str) -> str:
    return value[:4] if field.type == "YEAR" else value


FORMS = {
    **{f"below_{limit}": tuple(map(str, range(limit))) for limit in (4, 5, 6, 8, 9, 12, 60, 80)},
    "where": (
        *[""] * 6, " WHERE {field} IS NOT NULL", " WHERE id > {below_80}", " WHERE {different}",
        f" WHERE id IN ({', '.join(['{below_60}'] * 9)})",
    ),
    "limit": (
        " LIMIT {below_12}", " LIMIT {below_6}, {below_8}", " LIMIT {below_8} OFFSET {below_6}", "", "", "",
    ),
    "direction": ("", " ASC", " DESC"),
    "alias": ("", "", " AS {as}", " {as}"),
    # Aggregates of the column {f}.
    "count": ("COUNT(*)", "COUNT({f})", "COUNT(DISTINCT {f}{others})"),
    "others": ("", "", "", ", {field}", ", {field}, {field}"),
    "sum": ("SUM({f})", "AVG({f})", "sum({f})"),
    "sum_of_distinct": ("SUM(DISTINCT {f})", "AVG(DISTINCT {f})"),
    "bits": ("BIT_AND({bit})", "BIT_OR({bit})", "BIT_XOR({bit})"),
    "bit": ("a", "u", "id", "{f}"),
    "list": (
        *["GROUP_CONCAT({f}{also} ORDER BY {by}{direction}{separator})"] * 4,
        "GROUP_CONCAT(DISTINCT {f} ORDER BY {f} DESC)",
    ),
    "also": ("", "", ", '=', id"),
    "by": ("id", "a, id", "r, id", "{f}"),
    "separator": ("", "", " SEPARATOR '; '", " SEPARATOR ''"),
    "extreme": ("MIN({f})", "MAX({f})"),
    "constant": (
        "5 + 5", "-7", "'x'", "CONCAT('a', 1)", "1.5 * 2", "CURDATE() > '2020-01-01'", "CAST('5' AS UNSIGNED)",
        "DATE('2024-01-01')", "10 / 4", "NULL", "5e0 / 2",
    ),
    # An aggregate whose value is an exact number, or nearly always.
    "number": (
        "COUNT(*)", "COUNT({field})", "SUM({exact})", "SUM({exact})", "MIN({exact})", "MAX({exact})", "SUM(a = 1)",
        "AVG({exact})", "COUNT(DISTINCT {exact})",
    ),
    "exact": ("a", "n", "u", "id"),
    "whole": ("COUNT(*)", "SUM(a)"),
    # Expressions of aggregates, the last ones of texts.
    "made": (
        "{rounded}", "{floating}", "{moment}", "{shown}", "{coalesced}", "{coalesced}", "{ratio}", "{ratio}", "{cut}",
        "{compared}", "{calculated}", "{calculated}",
    ),
    "rounded": (
        "ROUND({average} / {divisor}, {below_4})", "ROUND({average} * 100, 0)", "ROUND({average} * 100, 2)",
        "ROUND(100 * {average})", "ROUND({average} / 60)", "ROUND({average} * 10, 2)",
    ),
    "average": ("AVG(a)", "AVG(n)", "AVG(u)", "AVG(id)", "AVG(a = 1)"),
    "divisor": ("3", "7", "60", "100", "1000", "3600"),
    "floating": ("COALESCE({float}, 0)", "{float} / COUNT(*)", "{float} * 2", "ROUND({float}, 3)"),
    "float": ("SUM(f)", "AVG(f)", "MAX(f)"),
    "moment": (
        "DATE(MAX(d))", "DATEDIFF(MAX(d), MIN(d))", "YEAR(MAX(d))", "MAX(d) + INTERVAL 1 DAY",
        "DATE_FORMAT(MAX(d), '%Y-%m')", "TIMESTAMPDIFF(DAY, MIN(d), MAX(d))", "COALESCE(MAX(d), '2024-01-01')",
        "MAX(d) > '20240201'", "TIME_TO_SEC(MAX(h))", "ADDTIME(MIN(h), '01:00:00')", "CAST(MAX(h) AS CHAR)",
        "IFNULL(MAX(d), 'never')",
    ),
    "shown": (
        "CONCAT({number}, ' rows')", "CAST({number} AS CHAR)", "LPAD({number}, 9, '0')", "FORMAT({number}, 2)",
        "IF({number} > 2, 'yes', 'no')", "CASE WHEN {number} > {number} THEN 'more' ELSE 'less' END",
    ),
    "coalesced": ("COALESCE({number}, 0)", "IFNULL({number}, -1)", "COALESCE({number}, {number}, 7.5)"),
    "ratio": (
        "{number} / {number}", "{number} / 3", "100 * {number} / COUNT(*)", "ROUND({number} / {whole}, 2)",
        "COALESCE({number} / NULLIF({number}, 0), 0)", "{number} / {whole} * 7",
    ),
    "cut": (
        "ROUND({number}, 1)", "ROUND(COALESCE({number}, 0), 2)", "CAST({number} AS SIGNED)", "FLOOR({number})",
        "CAST({number} AS DECIMAL(30,2))", "TRUNCATE({number}, 1)", "ABS({number})", "-{number}",
    ),
    "compared": (
        "{number} IS NULL", "{number} BETWEEN 1 AND 5", "NULLIF({number}, 1)", "{number} DIV 2", "{number} % 3",
        "GREATEST({number}, {number})", "{number} IN (1, 2, 3)", "NOT {number}",
    ),
    "calculated": (
        "{number} + {number}", "{number} - {whole}", "{number} * 1.2", "({number} + 1) * 2", "{number} * {whole}",
        "{number} * 1.5e0", "MAX(a) - MIN(a)",
    ),
    "made_of_text": (
        "COALESCE({text}, 'none')", "CONCAT('!', {text})", "UPPER({text})", "IF({text} = 'A', 1, 0)",
        "NULLIF({text}, 'b')", "{text} > 'a'",
    ),
    "text": ("MIN(s)", "MIN(r)", "MIN(v)", "MAX(s)", "MAX(r)", "MAX(v)"),
    # Of HAVING, and not one aggregate and a number.
    "condition": (
        "{number} > 1 OR {number} < 3", "{number} BETWEEN 1 AND 9", "NOT ({number} = 1)", "{number} > {number}",
        "{number} / {number} > 0.5", "{number} + {number} > 4", "{number} IN (1, 2, 3)", "COALESCE({number}, 0) > 1",
        "MAX(s) > 'a'", "MIN(r) <> 'b' AND COUNT(*) > 1", "{number} * 2 >= 3", "{number} / 3 = 1",
        "{number} > 1 AND {number} IS NOT NULL", "SUM(a) / COUNT(*) < 0.3333", "MAX(d) > '2024-01-15'",
    ),
    "of_int": ("{f} % 3", "{f} / 2", "-{f}"),
    "of_string": ("UPPER({f})", "LENGTH({f})", "CONCAT({f}, 'x')"),
    "of_decimal": ("ROUND({f}, 1)",),
    # A part of a UNION: {f} and a number.
    "part": (
        *["SELECT {f}, {counted}{from} GROUP BY {f}"] * 2, "SELECT MAX({f}), {counted}{from}",
        "(SELECT {f}, id{from} ORDER BY id LIMIT {below_9})",
        "(SELECT {f}, id FROM t ORDER BY id DESC LIMIT {below_4}, 5)", "SELECT {f}, id FROM t WHERE id = {below_9}",
        "SELECT NULL, {below_5}", "SELECT {f}, id{from}",
    ),
    "from": (" FROM t{where}",),
    "counted": ("COUNT(*)", "COUNT(*)", "COUNT({f})", "MAX(id)", "COUNT(DISTINCT a)"),
    "union": (" UNION ALL ", " UNION ALL ", " UNION ", " UNION DISTINCT "),
    # A derived table with {f} AS k and a number AS c.
    "inner": (
        *["SELECT {f} AS k, {figure} AS c{from} GROUP BY {f}"] * 2, "SELECT DISTINCT {f} AS k, a AS c{from}",
        "SELECT {f} AS k, id AS c{from} ORDER BY id LIMIT {below_9}",
    ),
    "figure": ("COUNT(*)", "MAX(id)", "MAX(n)", "MIN(a)", "SUM(n)", "COUNT(DISTINCT s)", "AVG(a)"),
    "of_inner": ("", "", " WHERE c > 1", " WHERE k IS NOT NULL"),
    # A window function, and its place in a SELECT as {w}.
    "windowed": (
        *["{call} OVER (PARTITION BY {partition}{order}){plus}"] * 6,
        *["{place} OVER (PARTITION BY {partition}{sorted}){plus}"] * 3,
    ),
    "call": ("RANK()", "COUNT({f})", "SUM(a)", "MAX({f})", "SUM(n)", "AVG(a)"),
    # Among equal rows, the server chooses.
    "place": ("ROW_NUMBER()", "FIRST_VALUE({f})", "LAG(id)"),
    "partition": ("id", "id", "id", "{f}, id", "t.id", "{f}"),
    "order": ("", " ORDER BY {f}", "{sorted}"),
    "sorted": (" ORDER BY {f}, id", " ORDER BY a DESC, id"),
    "plus": ("", "", " + 1"),
}  # fmt: skip
# What is selected from a derived table, and where its sort keys are among the items.
OF_PARTS: tuple[tuple[str, list[int]], ...] = (
    ("SELECT k, c FROM d{of_inner} ORDER BY k, c", [0, 1]),
    ("SELECT MAX(k), SUM(c), COUNT(*) FROM d{of_inner}", []),
    ("SELECT k, SUM(c) FROM d{of_inner} GROUP BY k", []),
    ("SELECT k, c * 2, c + 1 FROM d{of_inner} ORDER BY 1 DESC, 2 LIMIT 5", [0, 1]),
    ("SELECT k, c / 3 FROM d{of_inner}", []),
    ("SELECT k, RANK() OVER (ORDER BY c) FROM d{of_inner}", []),
)
OF_WINDOWS: tuple[tuple[str, list[int]], ...] = (
    ("SELECT id, {windowed} AS w{from}", []),
    ("SELECT id, {windowed} AS w{from} ORDER BY id{direction}{limit}", [0]),
    ("SELECT id, {windowed} AS w{from} ORDER BY w DESC, id{limit}", [1, 0]),
    ("SELECT * FROM (SELECT id, {windowed} AS w{from}) d WHERE w IS NOT NULL", []),
)
NUMBERS = ("int", "decimal", "float")
# A SELECT, where its sort keys are among the items, and which items fold.
Written = tuple[str, list[int], frozenset[int]]


class Author(Forms):
    def __init__(self, dice: random.Random, columns: Sequence[Field]) -> None:
        self.columns = [Field("id", "BIGINT", "int", ("1", "2", "3")), *columns]
        self.by_name = {field.name: field for field in self.columns}
        different = [
            f"{field.name} <> {own_literal(field, dice.choice(field.values))}"
            for field in self.columns
        ]
        super().__init__(dice, {**FORMS, "field": tuple(self.by_name), "different": different})

    def pick(self, count: int) -> list[Field]:
        return self.dice.sample(self.columns, min(count, len(self.columns)))

    def aggregate(self) -> tuple[str, bool]:
        """Return an aggregate and whether its value stands for others that compare equal."""
        field = self.dice.choice(self.columns)
        names = ["count"] * 3 + ["bits", "list"] + ["extreme"] * 2
        names += ["sum" if field.kind in NUMBERS else "extreme"] * 2
        names.append(
            "sum_of_distinct" if field.kind in (*NUMBERS, "time", "enum") else "extreme"
        )
        name = self.dice.choice(names)
        return self.say(name, f=field.name), name == "extreme" and field.folds

    def made(self) -> tuple[str, bool]:
        """Return an expression of aggregates, and whether it folds as `aggregate` says."""
        is_text = self.dice.random() < 1 / 13
        return self.say("made_of_text" if is_text else "made"), is_text

    def mixed(self, count: int) -> list[tuple[str, bool]]:
        """Return expressions of aggregates, and a few aggregates as they are."""
        dice = self.dice
        return [self.made() if dice.random() < 0.7 else self.aggregate() for _ in range(count)]

    def with_constant(
        self, found: list[tuple[str, bool]], share: float
    ) -> list[tuple[str, bool]]:
        return found + [(self.say("constant"), False)] * (self.dice.random() < share)

    def expression(self, field: Field) -> str:
        if self.dice.random() < 0.8 or field.kind not in ("int", "string", "decimal"):
            return field.name
        return self.say(f"of_{field.kind}", f=field.name).replace("-u", "u")

    def select(self) -> tuple[str, str, list[int], frozenset[int]]:
        """Return its kind, and what was written."""
        makers = {
            self.rows: 4, self.groups: 4, self.whole: 2, self.distinct: 2, self.counted: 2, self.derived: 2,
            self.computed: 2, self.computed_groups: 4, self.united: 2, self.from_parts: 1, self.windowed: 1,
        }  # fmt: skip
        (make,) = self.dice.choices([*makers], [*makers.values()])
        text, keys, folds = make()
        if self.dice.random() < 0.2:
            # An alias that hides a column, which may be one of those that it is made of.
            alias, name = self.dice.choice(("m0", "m1", "k0")), self.say("field")
            hidden = re.sub(rf"\b{alias}\b", name, text)
            if hidden != text and re.search(rf"\b{name}\b", text.partition(" BY ")[2]):
                # It is sorted by something else now, and of rows that are equal in that a LIMIT takes any.
                hidden, keys = (text, keys) if " LIMIT " in text else (hidden, [])
            text = hidden
        return make.__name__, text, keys, folds

    def counted(self) -> Written:
        """Return the count of what another SELECT gives, as paginators ask for it."""
        makers = (
            self.rows,
            self.groups,
            self.whole,
            self.distinct,
            self.computed_groups,
            self.united,
        )
        inner, _, _ = self.dice.choice(makers)()
        alias = self.dice.choice(("", " AS count_1", " n"))
        text = f"SELECT COUNT(*){alias} FROM ({inner}) {self.dice.choice(('AS d', 'd'))}"
        return text, [], frozenset()

    def derived(self) -> Written:
        """Return a SELECT from a derived table with the table's columns, or some of them."""
        dice = self.dice
        makers = self.rows, self.groups, self.whole, self.distinct, self.computed_groups
        text, keys, folds = dice.choice(makers)()
        if self.by_name["f"].type == "FLOAT" and re.search(r"(?i)\bM(IN|AX)\(f\)", text):
            # On MySQL it has the digits of a FLOAT or of a DOUBLE, 0.1 or 0.10000000149011612, as
            # the plan takes it through a temporary table or does not.
            return self.derived()
        items = dice.choice(("*", "DISTINCT *", ", ".join(self.by_name)))
        inner = self.fill(f"(SELECT {items}{{from}})")
        return re.sub(r" FROM t( AS x| x)?\b", f" FROM {inner} d", text, count=1), keys, folds

    def computed(self) -> Written:
        """Return a SELECT of expressions of aggregates, without groups."""
        found = self.mixed(self.dice.randrange(1, 4))
        text = f"SELECT {', '.join(item for item, _ in found)}{self.say('from')}"
        if self.dice.random() < 0.2:
            text += f" HAVING {self.say('condition')}"
        return text, [], folding(found)

    def computed_groups(self) -> Written:
        """Return a SELECT of groups with expressions of aggregates wherever they may stand."""
        dice = self.dice
        chosen = self.pick(dice.randrange(1, 3))
        names = [field.name for field in chosen]
        found = self.mixed(2)
        if dice.random() < 0.2 and chosen[0].kind == "int":
            found[0] = f"{names[0]} + COUNT(*)" if names[0] != "u" else "u - COUNT(*)", False
        elif dice.random() < 0.1 and chosen[0].kind == "string":
            found[0] = f"CONCAT(COUNT(*), ':', {names[0]})", True
        having = dice.choice((self.say("condition"), "m0 > 1", "m0 IS NULL", "m0 + m1 > 2"))
        first = ""
        if not found[0][1] and dice.random() < 0.6:
            first = dice.choice(("m0", found[0][0], "m0 + 1"))
        elif dice.random() < 0.3:
            first = f"{self.say('number')} + COUNT(*)"
        return self.grouped(chosen, names, found, names, having, first)

    def groups(self) -> Written:
        dice = self.dice
        chosen = self.pick(dice.randrange(1, 3))
        expressions = [self.expression(field) for field in chosen]
        found = [self.aggregate() for _ in range(dice.randrange(1, 4))]
        found = self.with_constant(found, 0.1)
        places = [
            dice.choice((expression, str(i), f"({i})", f"({expression})"))
            for i, expression in enumerate(expressions, 1)
        ]
        is_number = found[0][0].startswith(("COUNT", "SUM", "AVG"))
        having = dice.choice(
            ("COUNT(*) > 1", "m0 IS NOT NULL", "AVG(a) >= 0.3333", "AVG(n) < 1.5",
             "COUNT(*) >= 2 AND m0 > 0" if is_number else "COUNT(*) < 4")
        )  # fmt: skip
        first = "m0" if not found[0][1] and dice.random() < 0.5 else ""
        return self.grouped(chosen, expressions, found, places, having, first)

    def grouped(
        self,
        chosen: Sequence[Field],
        expressions: Sequence[str],
        found: Sequence[tuple[str, bool]],
        places: Sequence[str],
        having: str,
        first: str,
    ) -> Written:
        """Return a SELECT of *expressions* and of what was *found*, grouped by *places*; *first*: what it is sorted by first."""
        items = [*expressions, *(f"{item} AS m{i}" for i, (item, _) in enumerate(found))]
        text = f"SELECT {', '.join(items)}{self.say('from')} GROUP BY {', '.join(places)}"
        if self.dice.random() < 0.3:
            text += f" HAVING {having}"
        keys: list[int] = []
        if self.dice.random() < 0.65:
            keys = [*range(len(chosen))]
            if first in ("m0", "m0 + 1", found[0][0]):
                keys.insert(0, len(chosen))
            elif first:
                keys = []
            by = ", ".join(f"{each}{{direction}}" for each in (first, *expressions) if each)
            text += self.fill(f" ORDER BY {by}{{limit}}")
        return text, keys, folding([*((field.name, field.folds) for field in chosen), *found])

    def rows(self) -> Written:
        dice = self.dice
        items, keys, order = [], [], []
        for place, field in enumerate(self.pick(dice.randrange(1, 4))):
            expression = self.expression(field)
            alias = self.say("alias", **{"as": f"k{place}"})
            items.append(expression + alias)
            if dice.random() < 0.6:
                keys.append(place)
                name = alias.split()[-1] if alias else expression
                position = dice.choice((f"{place + 1}", f"{place + 1}", f"({place + 1})"))
                order.append(dice.choice((name, position)) + self.say("direction"))
        is_total = dice.random() < 0.6
        order += ["id"] * is_total
        alias = dice.choice(("", " AS x", " x"))
        text = f"SELECT {', '.join(items)} FROM t{alias}{self.say('where')}"
        if order:
            text += " ORDER BY " + ", ".join(order) + self.say("limit") * is_total
        return text, keys, frozenset()

    def whole(self) -> Written:
        found = [self.aggregate() for _ in range(self.dice.randrange(1, 5))]
        found = self.with_constant(found, 0.2)
        items = ", ".join(item for item, _ in found)
        text = self.fill(f"SELECT {items}{{alias}}{{from}}", **{"as": "m0"})
        return text, [], folding(found)

    def distinct(self) -> Written:
        chosen = self.pick(self.dice.randrange(1, 3))
        names = [field.name for field in chosen]
        text = f"SELECT DISTINCT {', '.join(names)}{self.say('from')}"
        folds = folding([(field.name, field.folds) for field in chosen])
        if self.dice.random() < 0.4:
            return text, [], folds
        by = ", ".join(f"{name}{{direction}}" for name in names)
        return text + self.fill(f" ORDER BY {by}{{limit}}"), [*range(len(names))], folds

    def united(self) -> Written:
        """Return a UNION of SELECTs that do not all scatter row by row."""
        dice = self.dice
        field = dice.choice(self.columns)
        # Sometimes of another type, which is to be refused or the same.
        fields = [field if dice.random() < 0.9 else dice.choice(self.columns) for _ in range(3)]
        first, *others = [
            self.say("part", f=each.name) for each in fields[: dice.choice((2, 2, 3))]
        ]
        if dice.random() < 0.5:
            first = first.replace(", ", " AS k, ", 1)
        if not first.startswith("(") and others[-1].startswith("(") and dice.random() < 0.5:
            first = f"({first})"
        text = first + "".join(self.say("union") + each for each in others)
        folds = frozenset({0} if any(each.folds for each in fields) else ())
        if dice.random() < 0.4:
            return text, [], folds
        return text + self.fill(" ORDER BY 1{direction}, 2{direction}{limit}"), [0, 1], folds

    def from_parts(self) -> Written:
        """Return a SELECT from a derived table, or from WITH, that all shards have rows for."""
        field = self.dice.choice([each for each in self.columns if each.type != "FLOAT"])
        inner = self.say("inner", f=field.name)
        form, keys = self.dice.choice(OF_PARTS)
        text = self.fill(form)
        folds = frozenset({0} if field.folds else ())
        if self.dice.random() < 0.5:
            return f"WITH d AS ({inner}) {text}", keys, folds
        return text.replace("FROM d", f"FROM ({inner}) AS d", 1), keys, folds

    def windowed(self) -> Written:
        """Return a SELECT with a window function, most of which have each partition on one shard."""
        form, keys = self.dice.choice(OF_WINDOWS)
        return self.fill(form, f=self.say("field")), keys, frozenset()


def folding(found: Sequence[tuple[str, bool]]) -> frozenset[int]:
    return frozenset(place for place, (_, folds) in enumerate(found) if folds)
