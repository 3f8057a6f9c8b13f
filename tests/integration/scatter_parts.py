"""Random UNIONs of groups and limits, SELECTs from derived tables and WITH, window functions."""

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from tests.integration.scatter_author import Author, Field


Written = tuple[str, list[int], frozenset[int]]


def united(author: "Author") -> Written:
    """Return a UNION of SELECTs that do not all scatter row by row."""
    dice = author.dice
    field = dice.choice(author.columns)
    # Sometimes of another type, which is to be refused or the same.
    fields = [field if dice.random() < 0.9 else dice.choice(author.columns) for _ in range(3)]
    parts = [_part(author, each) for each in fields[: dice.choice((2, 2, 3))]]
    parts[0] = parts[0].replace(", ", " AS k, ", 1) if dice.random() < 0.5 else parts[0]
    text = parts[0]
    for part in parts[1:]:
        text += (
            dice.choice((" UNION ALL ", " UNION ALL ", " UNION ", " UNION DISTINCT ")) + part
        )
    if not text.startswith("(") and parts[-1].startswith("(") and dice.random() < 0.5:
        text = f"({parts[0]})" + text[len(parts[0]) :]
    folds = frozenset({0} if any(each.folds for each in fields) else ())
    if dice.random() < 0.4:
        return text, [], folds
    order = f" ORDER BY 1{author.direction()}, 2{author.direction()}"
    return text + order + author.limit(), [0, 1], folds


def _part(author: "Author", field: "Field") -> str:
    dice = author.dice
    name = field.name
    number = dice.choice(
        ("COUNT(*)", "COUNT(*)", f"COUNT({name})", "MAX(id)", "COUNT(DISTINCT a)")
    )
    match dice.randrange(8):
        case 0 | 1:
            return f"SELECT {name}, {number} FROM t{author.where()} GROUP BY {name}"
        case 2:
            return f"SELECT MAX({name}), {number} FROM t{author.where()}"
        case 3:
            return f"(SELECT {name}, id FROM t{author.where()} ORDER BY id LIMIT {dice.randrange(9)})"
        case 4:
            return f"(SELECT {name}, id FROM t ORDER BY id DESC LIMIT {dice.randrange(4)}, 5)"
        case 5:
            return f"SELECT {name}, id FROM t WHERE id = {dice.randrange(1, 9)}"
        case 6:
            return f"SELECT NULL, {dice.randrange(5)}"
        case _:
            return f"SELECT {name}, id FROM t{author.where()}"


def from_parts(author: "Author") -> Written:
    """Return a SELECT from a derived table, or from WITH, that all shards have rows for."""
    dice = author.dice
    field = dice.choice([each for each in author.columns if each.type != "FLOAT"])
    name = field.name
    number = dice.choice(
        ("COUNT(*)", "MAX(id)", "MAX(n)", "MIN(a)", "SUM(n)", "COUNT(DISTINCT s)", "AVG(a)")
    )
    inner = dice.choice(
        (f"SELECT {name} AS k, {number} AS c FROM t{author.where()} GROUP BY {name}",
         f"SELECT {name} AS k, {number} AS c FROM t{author.where()} GROUP BY {name}",
         f"SELECT DISTINCT {name} AS k, a AS c FROM t{author.where()}",
         f"SELECT {name} AS k, id AS c FROM t{author.where()} ORDER BY id LIMIT {dice.randrange(9)}")
    )  # fmt: skip
    where = dice.choice(("", "", " WHERE c > 1", " WHERE k IS NOT NULL"))
    folds = frozenset({0} if field.folds else ())
    text, keys = dice.choice(
        ((f"SELECT k, c FROM d{where} ORDER BY k, c", [0, 1]),
         (f"SELECT MAX(k), SUM(c), COUNT(*) FROM d{where}", []),
         (f"SELECT k, SUM(c) FROM d{where} GROUP BY k", []),
         (f"SELECT k, c * 2, c + 1 FROM d{where} ORDER BY 1 DESC, 2 LIMIT 5", [0, 1]),
         (f"SELECT k, c / 3 FROM d{where}", []),
         (f"SELECT k, RANK() OVER (ORDER BY c) FROM d{where}", []))
    )  # fmt: skip
    if dice.random() < 0.5:
        return f"WITH d AS ({inner}) {text}", keys, folds
    return text.replace("FROM d", f"FROM ({inner}) AS d", 1), keys, folds


def windowed(author: "Author") -> Written:
    """Return a SELECT with window functions, most of which have each partition on one shard."""
    dice = author.dice
    field = dice.choice(author.columns)
    partition = dice.choice(("id", "id", "id", f"{field.name}, id", "t.id", field.name))
    call = dice.choice(
        ("ROW_NUMBER()", "RANK()", f"COUNT({field.name})", "SUM(a)", f"MAX({field.name})", "LAG(id)",
         "SUM(n)", "AVG(a)", f"FIRST_VALUE({field.name})")
    )  # fmt: skip
    order = dice.choice(("", f" ORDER BY {field.name}", " ORDER BY a DESC, id"))
    if not order and call == "LAG(id)":
        order = " ORDER BY id"
    item = f"{call} OVER (PARTITION BY {partition}{order})" + dice.choice(("", "", " + 1"))
    text = f"SELECT id, {item} AS w FROM t{author.where()}"
    match dice.randrange(4):
        case 0:
            return text, [], frozenset()
        case 1:
            return f"{text} ORDER BY id{author.direction()}" + author.limit(), [0], frozenset()
        case 2:
            return f"{text} ORDER BY w DESC, id" + author.limit(), [1, 0], frozenset()
        case _:
            return f"SELECT * FROM ({text}) d WHERE w IS NOT NULL", [], frozenset()
