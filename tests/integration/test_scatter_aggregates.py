"""Aggregates over several shards, one kind after another, with what the random test once found."""

from collections.abc import Iterator

import pytest

from tests.fixtures.fix_servers import DatabaseServer
from tests.integration.scatter import Town, ask, check, town


pytestmark = pytest.mark.db


@pytest.fixture
def place(server: DatabaseServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(server, tmp_path_factory.mktemp("scatter")) as found:
        yield found


def test_several_distinct_aggregates_are_those_of_one_server(place: Town) -> None:
    place.create("id BIGINT PRIMARY KEY, g INT, a INT, s VARCHAR(20), n DECIMAL(10,3)")
    place.insert(
        ["id", "g", "a", "s", "n"],
        [
            [str(i), str(i % 4), str(i % 7) if i % 5 else "NULL",
             f"'{('x', 'X', 'y ', 'y', '1', '01')[i * i % 6]}'", f"{i % 3}.5"]
            for i in range(1, 60)
        ],
    )  # fmt: skip
    check(
        place,
        "SELECT COUNT(DISTINCT a), SUM(DISTINCT n), COUNT(*), COUNT(DISTINCT s, a) FROM t",
        "SELECT COUNT(DISTINCT a), COUNT(DISTINCT s) FROM t WHERE id > 90",
        "SELECT g, COUNT(DISTINCT s), AVG(DISTINCT n), COUNT(DISTINCT a), SUM(a) FROM t"
        " GROUP BY g ORDER BY g DESC",
        "SELECT g, COUNT(DISTINCT s) c, SUM(DISTINCT a) / COUNT(DISTINCT n) FROM t GROUP BY g"
        " HAVING COUNT(DISTINCT a) > 1 ORDER BY c, g LIMIT 3",
    )
    # '1' and '01' are two strings and one number.
    answer = ask(place.spread[2], "SELECT SUM(DISTINCT s) FROM t")
    assert answer.error == (
        1235,
        "unsupported: SUM(DISTINCT …) of what is no number over several shards",
    )
