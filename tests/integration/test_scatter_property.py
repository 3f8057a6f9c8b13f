"""Random SELECTs over 2, 3 and 8 shards, answered as one server answers them or refused.

SCATTER_QUERIES sets how many (per kind of server), SCATTER_SEED which. A difference names the
seed of its table, and becomes a test of test_scatter.py.
"""

import os
import random
import re

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.integration.scatter import ComparedCluster, Tally, ask, differences
from tests.integration.scatter_author import Author, fields, literal
from tests.integration.scatter_promises import (
    OF_VALUES,
    REFUSED,
    SUM_OF_FLOATS,
    answers_wrongly,
    listed,
    nearly_ties,
    order_difference,
)


pytestmark = [pytest.mark.db, pytest.mark.slow]

QUERIES = int(os.environ.get("SCATTER_QUERIES", "600"))
SEED = int(os.environ.get("SCATTER_SEED", "1"))
QUERIES_PER_TABLE = 60


def test_every_answer_is_that_of_one_server_or_refused(compared: ComparedCluster) -> None:
    family = compared.server.family
    tally = Tally()
    found: list[str] = []
    for number in range(max(1, QUERIES // QUERIES_PER_TABLE)):
        seed = SEED * 1_000_000 + number
        dice = random.Random(seed)
        columns = fields(dice, family)
        compared.create(
            "id BIGINT PRIMARY KEY, "
            + ", ".join(f"{field.name} {field.type}" for field in columns)
        )
        count = dice.choice((0, 1, 5, 40, 120))
        compared.insert(
            ["id", *(field.name for field in columns)],
            [
                [str(number), *(literal(dice, field) for field in columns)]
                for number in range(1, count + 1)
            ],
        )
        author = Author(dice, columns)
        for _ in range(QUERIES_PER_TABLE):
            kind, sql, keys, folds = author.select()
            prepared = dice.random() < 0.2
            theirs = ask(compared.direct, sql, prepared=prepared)
            shards = dice.choice(tuple(compared.spread))
            mine = ask(compared.spread[shards], sql, prepared=prepared)
            tally.asked[kind] += 1
            if mine.error is not None and mine.error[0] in REFUSED:
                if "differently" in mine.error[1]:
                    found.append(f"table {seed}, {shards} shards: {sql}\n    {mine.error[1]}")
                tally.refuse(kind, mine.error[1])
                continue
            # Whether the values of these go through a temporary table, which changes their types
            # a little, is up to each server's plan.
            types = kind != "derived" and not re.search(
                r"LIMIT (0|\d+, 0)\b|\(DISTINCT|GROUP_CONCAT", sql
            )
            sums_floats = bool(SUM_OF_FLOATS.search(sql))
            # A group's text may be any of those that are equal, and a UNION sort it by another collation.
            is_unsorted = kind == "united" and bool(folds.intersection(keys))
            if "GROUP_CONCAT" in sql:
                mine, theirs = listed(mine), listed(theirs)
            difference = differences(mine, theirs, folds=folds, types=types)
            if not (difference or is_unsorted):
                difference = order_difference(mine, theirs, keys, sums_floats=sums_floats)
            # What is computed of groups that nobody sees, and may be an error, is up to the plan.
            fails = any(each.error and each.error[0] in OF_VALUES for each in (mine, theirs))
            is_moot = fails and (kind == "counted" or "LIMIT" in sql)
            is_moot |= is_unsorted and "LIMIT" in sql
            is_moot |= family is Family.MARIADB and answers_wrongly(sql)
            if difference and sums_floats and " LIMIT " in sql:
                # Which rows it lets through is up to those digits.
                whole = ask(compared.direct, sql[: sql.rindex(" LIMIT ")])
                is_moot |= any(nearly_ties(whole, key) for key in keys)
            if difference and not is_moot:
                how = "prepared, " if prepared else ""
                found.append(
                    f"table {seed}, {shards} shards: {how}{sql}\n    {difference[:600]}"
                )
    tally.close(
        found,
        computed=0.25,
        computed_groups=0.3,
        counted=0.3,
        derived=0.2,
        from_parts=0.3,
        groups=0.15,
        united=0.5,
        whole=0.35,
        windowed=0.6,
    )
