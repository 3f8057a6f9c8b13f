"""Random tables, and random queries of one of them, for `test_scatter_property`."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from streamfrom.proxy.embedded.servers import Family
from tests.integration import scatter_parts


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
    collations = [
        "utf8mb4_general_ci",
        "utf8mb4_bin",
        "utf8mb4_unicode_ci",
        "latin1_swedish_ci",
    ]
    collations.append(
        "utf8mb4_0900_ai_ci" if family is Family.MYSQL else "utf8mb4_unicode_nopad_ci"
    )
    collation = dice.choice(collations)
    other = dice.choice(collations)
    words = tuple(f"'{word}'" for word in WORDS)
    latin = tuple(word for word in words if "😀" not in word)

    def string(name: str, sort: str, kind: str) -> Field:
        return Field(
            name,
            f"{kind} CHARACTER SET {sort.partition('_')[0]} COLLATE {sort}",
            "string",
            latin if sort.startswith("latin1") else words,
            folds=True,
        )

    return [
        Field("a", dice.choice(("INT", "TINYINT", "BIGINT", "SMALLINT")), "int",
              tuple(str(n) for n in range(-3, 6))),
        Field("u", "BIGINT UNSIGNED", "int", ("0", "1", "7", "18446744073709551615", "9223372036854775807")),
        Field("n", dice.choice(("DECIMAL(10,3)", "DECIMAL(30,0)", "DECIMAL(5,2)")), "decimal",
              ("0", "1.5", "-1.5", "2.25", "10", "9.99", "-0.01", "333")),
        Field("f", dice.choice(("DOUBLE", "FLOAT", "DOUBLE(12,3)")), "float",
              ("0", "0.1", "-2.5", "3.3333333333", "3.33333333334", "123456.789", "2", "1000000")),
        string("s", collation, dice.choice(("VARCHAR(20)", "CHAR(10)", "TEXT"))),
        string("r", other, "VARCHAR(30)"),
        Field("v", "VARBINARY(10)", "bytes", ("'a'", "'A'", "x'00'", "'a '", "''", "x'ff61'")),
        Field("d", dice.choice(("DATE", "DATETIME", "DATETIME(3)", "TIMESTAMP NULL", "YEAR")), "time",
              ("20240101", "20231231", "20250228", "20240229")),
        Field("h", dice.choice(("TIME", "TIME(2)")), "time",
              ("'-10:00:00'", "'100:00:00'", "'99:59:59'", "'00:00:01'", "'-00:00:01'")),
        Field("e", "ENUM('z','a','M')", "enum", ("'z'", "'a'", "'M'")),
    ]  # fmt: skip


def literal(dice: random.Random, field: Field) -> str:
    if dice.random() < 0.15:
        return "NULL"
    value = dice.choice(field.values)
    if field.type == "YEAR":
        return value[:4]
    return value


class Author:
    united = scatter_parts.united
    windowed = scatter_parts.windowed
    from_parts = scatter_parts.from_parts

    def __init__(self, dice: random.Random, columns: Sequence[Field]) -> None:
        self.dice = dice
        self.columns = [Field("id", "BIGINT", "int", ("1", "2", "3")), *columns]
        self.by_name = {field.name: field for field in self.columns}

    def pick(self, count: int) -> list[Field]:
        return self.dice.sample(self.columns, min(count, len(self.columns)))

    def where(self) -> str:
        dice = self.dice
        if dice.random() < 0.6:
            return ""
        field = dice.choice(self.columns)
        match dice.randrange(4):
            case 0:
                return f" WHERE {field.name} IS NOT NULL"
            case 1:
                return f" WHERE id > {dice.randrange(80)}"
            case 2:
                return f" WHERE id IN ({', '.join(str(dice.randrange(60)) for _ in range(9))})"
            case _:
                return f" WHERE {field.name} <> {dice.choice(field.values)[:4] if field.type == 'YEAR' else dice.choice(field.values)}"

    def limit(self) -> str:
        dice = self.dice
        match dice.randrange(6):
            case 0:
                return f" LIMIT {dice.randrange(12)}"
            case 1:
                return f" LIMIT {dice.randrange(6)}, {dice.randrange(8)}"
            case 2:
                return f" LIMIT {dice.randrange(8)} OFFSET {dice.randrange(6)}"
            case _:
                return ""

    def direction(self) -> str:
        return self.dice.choice(("", " ASC", " DESC"))

    def aggregate(self) -> tuple[str, bool]:
        """Return an aggregate and whether its value stands for others that compare equal."""
        dice = self.dice
        field = dice.choice(self.columns)
        match dice.randrange(10):
            case 0:
                return "COUNT(*)", False
            case 1:
                return f"COUNT({field.name})", False
            case 2:
                more = [each.name for each in self.pick(dice.choice((0, 0, 0, 1, 2)))]
                return f"COUNT(DISTINCT {', '.join([field.name, *more])})", False
            case 3 | 4 if field.kind in ("int", "decimal", "float"):
                return f"{dice.choice(('SUM', 'AVG', 'sum'))}({field.name})", False
            case 7:
                order = f"{dice.choice(('id', 'a, id', 'r, id', field.name))}{self.direction()}"
                if dice.random() < 0.2:
                    return (
                        f"GROUP_CONCAT(DISTINCT {field.name} ORDER BY {field.name} DESC)",
                        False,
                    )
                end = dice.choice(("", "", " SEPARATOR '; '", " SEPARATOR ''"))
                also = dice.choice(("", "", ", '=', id"))
                return f"GROUP_CONCAT({field.name}{also} ORDER BY {order}{end})", False
            case 6:
                bits = dice.choice(("BIT_AND", "BIT_OR", "BIT_XOR"))
                return f"{bits}({dice.choice(('a', 'u', 'id', field.name))})", False
            case 5 if field.kind in ("int", "decimal", "float", "time", "enum"):
                return f"{dice.choice(('SUM', 'AVG'))}(DISTINCT {field.name})", False
            case _:
                return f"{dice.choice(('MIN', 'MAX'))}({field.name})", field.folds

    def constant(self) -> str:
        return self.dice.choice(
            ("5 + 5", "-7", "'x'", "CONCAT('a', 1)", "1.5 * 2", "CURDATE() > '2020-01-01'",
             "CAST('5' AS UNSIGNED)", "DATE('2024-01-01')", "10 / 4", "NULL", "5e0 / 2")
        )  # fmt: skip

    def select(self) -> tuple[str, str, list[int], frozenset[int]]:
        """Return its kind, a SELECT, where its sort keys are among the items, and which items fold."""
        makers = [self.rows, self.groups, self.whole, self.distinct, self.counted, self.derived]
        makers += [
            self.computed,
            self.computed_groups,
            self.united,
            self.from_parts,
            self.windowed,
        ]
        (make,) = self.dice.choices(makers, (4, 4, 2, 2, 2, 2, 2, 4, 2, 1, 1))
        text, keys, folds = make()
        if self.dice.random() < 0.2:
            # An alias that hides a column, which may be one of those that it is made of.
            alias, name = (
                self.dice.choice(("m0", "m1", "k0")),
                self.dice.choice(self.columns).name,
            )
            hidden = re.sub(rf"\b{alias}\b", name, text)
            if hidden != text and re.search(rf"\b{name}\b", text.partition(" BY ")[2]):
                # It is sorted by something else now, and of rows that are equal in that a LIMIT takes any.
                hidden, keys = (text, keys) if " LIMIT " in text else (hidden, [])
            text = hidden
        return make.__name__, text, keys, folds

    def counted(self) -> tuple[str, list[int], frozenset[int]]:
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
        return (
            f"SELECT COUNT(*){alias} FROM ({inner}) {self.dice.choice(('AS d', 'd'))}",
            [],
            frozenset(),
        )

    def derived(self) -> tuple[str, list[int], frozenset[int]]:
        """Return a SELECT from a derived table with the table's columns, or some of them."""
        dice = self.dice
        makers = (self.rows, self.groups, self.whole, self.distinct, self.computed_groups)
        make = dice.choice(makers)
        text, keys, folds = make()
        if self.by_name["f"].type == "FLOAT" and re.search(
            r"\bM(IN|AX)\(f\)", text, re.IGNORECASE
        ):
            # On MySQL it has the digits of a FLOAT or of a DOUBLE, 0.1 or 0.10000000149011612, as
            # the plan takes it through a temporary table or does not.
            return self.derived()
        items = dice.choice(("*", "DISTINCT *", ", ".join(self.by_name)))
        inner = f"(SELECT {items} FROM t{self.where()})"
        return re.sub(r" FROM t( AS x| x)?\b", f" FROM {inner} d", text, count=1), keys, folds

    def number(self) -> str:
        """Return an aggregate whose value is an exact number, or nearly always."""
        dice = self.dice
        column = dice.choice(("a", "n", "u", "id"))
        return dice.choice(
            ("COUNT(*)", f"COUNT({dice.choice(self.columns).name})", f"SUM({column})",
             f"SUM({column})", f"MIN({column})", f"MAX({column})", "SUM(a = 1)", f"AVG({column})",
             f"COUNT(DISTINCT {column})")
        )  # fmt: skip

    def made(self) -> tuple[str, bool]:
        """Return an expression of aggregates, and whether it folds as `aggregate` says."""
        dice = self.dice
        x, y, whole = self.number(), self.number(), dice.choice(("COUNT(*)", "SUM(a)"))
        match dice.randrange(13):
            case 12:
                average = f"AVG({dice.choice(('a', 'n', 'u', 'id', 'a = 1'))})"
                return dice.choice(
                    (f"ROUND({average} / {dice.choice((3, 7, 60, 100, 1000, 3600))}, {dice.randrange(4)})",
                     f"ROUND({average} * 100, {dice.randrange(3)})", f"ROUND(100 * {average})",
                     f"ROUND({average} / 60)", f"ROUND({average} * 10, 2)")
                ), False  # fmt: skip
            case 0:
                f = dice.choice(("SUM(f)", "AVG(f)", "MAX(f)"))
                return dice.choice(
                    (f"COALESCE({f}, 0)", f"{f} / COUNT(*)", f"{f} * 2", f"ROUND({f}, 3)")
                ), False
            case 1:
                s = f"{dice.choice(('MIN', 'MAX'))}({dice.choice('srv')})"
                return dice.choice(
                    (f"COALESCE({s}, 'none')", f"CONCAT('!', {s})", f"UPPER({s})",
                     f"IF({s} = 'A', 1, 0)", f"NULLIF({s}, 'b')", f"{s} > 'a'")
                ), True  # fmt: skip
            case 2:
                d = "MAX(d)"
                return dice.choice(
                    (f"DATE({d})", f"DATEDIFF({d}, MIN(d))", f"YEAR({d})", f"{d} + INTERVAL 1 DAY",
                     f"DATE_FORMAT({d}, '%Y-%m')", f"TIMESTAMPDIFF(DAY, MIN(d), {d})",
                     f"COALESCE({d}, '2024-01-01')", f"{d} > '20240201'", "TIME_TO_SEC(MAX(h))",
                     "ADDTIME(MIN(h), '01:00:00')", "CAST(MAX(h) AS CHAR)", f"IFNULL({d}, 'never')")
                ), False  # fmt: skip
            case 3:
                return dice.choice(
                    (f"CONCAT({x}, ' rows')", f"CAST({x} AS CHAR)", f"LPAD({x}, 9, '0')",
                     f"IF({x} > 2, 'yes', 'no')", f"FORMAT({x}, 2)",
                     f"CASE WHEN {x} > {y} THEN 'more' ELSE 'less' END")
                ), False  # fmt: skip
            case 4 | 5:
                return dice.choice(
                    (f"COALESCE({x}, 0)", f"IFNULL({x}, -1)", f"COALESCE({x}, {y}, 7.5)")
                ), False
            case 6 | 7:
                return dice.choice(
                    (f"{x} / {y}", f"{x} / 3", f"100 * {x} / COUNT(*)", f"ROUND({x} / {whole}, 2)",
                     f"COALESCE({x} / NULLIF({y}, 0), 0)", f"{x} / {whole} * 7")
                ), False  # fmt: skip
            case 8:
                return dice.choice(
                    (f"ROUND({x}, 1)", f"ROUND(COALESCE({x}, 0), 2)", f"CAST({x} AS SIGNED)", f"FLOOR({x})",
                     f"CAST({x} AS DECIMAL(30,2))", f"TRUNCATE({x}, 1)", f"ABS({x})", f"-{x}")
                ), False  # fmt: skip
            case 9:
                return dice.choice(
                    (f"{x} IS NULL", f"{x} BETWEEN 1 AND 5", f"NULLIF({x}, 1)", f"{x} DIV 2",
                     f"{x} % 3", f"GREATEST({x}, {y})", f"{x} IN (1, 2, 3)", f"NOT {x}")
                ), False  # fmt: skip
            case _:
                return dice.choice(
                    (f"{x} + {y}", f"{x} - {whole}", f"{x} * 1.2", f"({x} + 1) * 2",
                     f"{x} * {whole}", f"{x} * 1.5e0", "MAX(a) - MIN(a)")
                ), False  # fmt: skip

    def computed(self) -> tuple[str, list[int], frozenset[int]]:
        """Return a SELECT of expressions of aggregates, without groups."""
        found = [
            self.made() if self.dice.random() < 0.7 else self.aggregate()
            for _ in range(self.dice.randrange(1, 4))
        ]
        text = f"SELECT {', '.join(item for item, _ in found)} FROM t{self.where()}"
        if self.dice.random() < 0.2:
            text += f" HAVING {self.computed_condition()}"
        return text, [], frozenset(i for i, (_, folds) in enumerate(found) if folds)

    def computed_condition(self) -> str:
        """Return a condition of HAVING that is not one aggregate and a number."""
        dice = self.dice
        x, y = self.number(), self.number()
        return dice.choice(
            (f"{x} > 1 OR {y} < 3", f"{x} BETWEEN 1 AND 9", f"NOT ({x} = 1)", f"{x} > {y}",
             f"{x} / {y} > 0.5", f"{x} + {y} > 4", f"{x} IN (1, 2, 3)", f"COALESCE({x}, 0) > 1",
             "MAX(s) > 'a'", "MIN(r) <> 'b' AND COUNT(*) > 1", f"{x} * 2 >= 3", f"{x} / 3 = 1",
             f"{x} > 1 AND {y} IS NOT NULL", "SUM(a) / COUNT(*) < 0.3333", "MAX(d) > '2024-01-15'")
        )  # fmt: skip

    def computed_groups(self) -> tuple[str, list[int], frozenset[int]]:
        """Return a SELECT of groups with expressions of aggregates wherever they may stand."""
        dice = self.dice
        chosen = self.pick(dice.randrange(1, 3))
        names = [field.name for field in chosen]
        found = [self.made() if dice.random() < 0.7 else self.aggregate() for _ in range(2)]
        if dice.random() < 0.2 and chosen[0].kind == "int":
            found[0] = f"{names[0]} + COUNT(*)" if names[0] != "u" else "u - COUNT(*)", False
        elif dice.random() < 0.1 and chosen[0].kind == "string":
            found[0] = f"CONCAT(COUNT(*), ':', {names[0]})", True
        items = names + [f"{item} AS m{i}" for i, (item, _) in enumerate(found)]
        text = f"SELECT {', '.join(items)} FROM t{self.where()} GROUP BY {', '.join(names)}"
        if dice.random() < 0.3:
            text += f" HAVING {dice.choice((self.computed_condition(), 'm0 > 1', 'm0 IS NULL', 'm0 + m1 > 2'))}"
        folds = {i for i, field in enumerate(chosen) if field.folds}
        folds |= {len(chosen) + i for i, (_, each) in enumerate(found) if each}
        keys = []
        if dice.random() < 0.7:
            order = [name + self.direction() for name in names]
            keys = list(range(len(chosen)))
            if dice.random() < 0.6 and not found[0][1]:
                order.insert(0, dice.choice(("m0", found[0][0], "m0 + 1")) + self.direction())
                keys.insert(0, len(chosen))
            elif dice.random() < 0.3:
                order.insert(0, f"{self.number()} + COUNT(*)" + self.direction())
                keys = []
            text += " ORDER BY " + ", ".join(order) + self.limit()
        return text, keys, frozenset(folds)

    def expression(self, field: Field) -> str:
        dice = self.dice
        if dice.random() < 0.8:
            return field.name
        match field.kind:
            case "int":
                return dice.choice(
                    (
                        f"{field.name} % 3",
                        f"{field.name} / 2",
                        f"-{field.name}" if field.name != "u" else "u",
                    )
                )
            case "string":
                return dice.choice(
                    (
                        f"UPPER({field.name})",
                        f"LENGTH({field.name})",
                        f"CONCAT({field.name}, 'x')",
                    )
                )
            case "decimal":
                return f"ROUND({field.name}, 1)"
            case _:
                return field.name

    def rows(self) -> tuple[str, list[int], frozenset[int]]:
        dice = self.dice
        chosen = self.pick(dice.randrange(1, 4))
        items = []
        keys: list[int] = []
        order = []
        for place, field in enumerate(chosen):
            expression = self.expression(field)
            alias = dice.choice(("", "", f" AS k{place}", f" k{place}"))
            items.append(expression + alias)
            if dice.random() < 0.6:
                keys.append(place)
                name = alias.split()[-1] if alias else expression
                position = dice.choice((f"{place + 1}", f"{place + 1}", f"({place + 1})"))
                order.append(dice.choice((name, position)) + self.direction())
        is_total = dice.random() < 0.6
        if is_total:
            order.append("id")
        text = (
            f"SELECT {', '.join(items)} FROM t{dice.choice(('', ' AS x', ' x'))}{self.where()}"
        )
        if order:
            text += " ORDER BY " + ", ".join(order)
            text += self.limit() if is_total else ""
        return text, keys, frozenset()

    def whole(self) -> tuple[str, list[int], frozenset[int]]:
        found = [self.aggregate() for _ in range(self.dice.randrange(1, 5))]
        found += [(self.constant(), False)] if self.dice.random() < 0.2 else []
        alias = self.dice.choice(("", "", " AS m0", " m0"))
        text = f"SELECT {', '.join(item for item, _ in found)}{alias} FROM t{self.where()}"
        folds = frozenset(i for i, (_, folds) in enumerate(found) if folds)
        return text, [], folds

    def distinct(self) -> tuple[str, list[int], frozenset[int]]:
        dice = self.dice
        chosen = self.pick(dice.randrange(1, 3))
        text = f"SELECT DISTINCT {', '.join(f.name for f in chosen)} FROM t{self.where()}"
        folds = frozenset(i for i, field in enumerate(chosen) if field.folds)
        keys = list(range(len(chosen)))
        if dice.random() < 0.6:
            text += " ORDER BY " + ", ".join(f.name + self.direction() for f in chosen)
            text += self.limit()
            return text, keys, folds
        return text, [], folds

    def groups(self) -> tuple[str, list[int], frozenset[int]]:
        dice = self.dice
        chosen = self.pick(dice.randrange(1, 3))
        expressions = [self.expression(field) for field in chosen]
        found = [self.aggregate() for _ in range(dice.randrange(1, 4))]
        found += [(self.constant(), False)] if dice.random() < 0.1 else []
        items = expressions + [f"{item} AS m{i}" for i, (item, _) in enumerate(found)]
        grouped = [
            dice.choice((expression, str(i + 1), f"({i + 1})", f"({expression})"))
            for i, expression in enumerate(expressions)
        ]
        text = f"SELECT {', '.join(items)} FROM t{self.where()} GROUP BY {', '.join(grouped)}"
        if dice.random() < 0.3:
            text += dice.choice(
                (" HAVING COUNT(*) > 1", " HAVING m0 IS NOT NULL", " HAVING AVG(a) >= 0.3333", " HAVING AVG(n) < 1.5", " HAVING COUNT(*) >= 2 AND m0 > 0"
                 if found[0][0].startswith(("COUNT", "SUM", "AVG")) else " HAVING COUNT(*) < 4")
            )  # fmt: skip
        folds = {i for i, field in enumerate(chosen) if field.folds}
        folds |= {len(chosen) + i for i, (_, each) in enumerate(found) if each}
        keys = []
        if dice.random() < 0.6:
            order = [expression + self.direction() for expression in expressions]
            keys = list(range(len(chosen)))
            if dice.random() < 0.5 and not found[0][1]:
                order.insert(0, "m0" + self.direction())
                keys.insert(0, len(chosen))
            text += " ORDER BY " + ", ".join(order) + self.limit()
        return text, keys, frozenset(folds)
