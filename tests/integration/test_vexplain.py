"""Where a statement would run, asked as Vitess's users ask."""

from typing import Any

import pytest

from tests.fixtures.streams import refused, rows, run
from tests.integration.conftest import HIGH_IDS, LOW_IDS, SharedCluster


pytestmark = [pytest.mark.db, pytest.mark.one_server]


@pytest.fixture
def client(cluster: SharedCluster) -> Any:
    return cluster.proxy.connect(database="commerce", autocommit=True)


PURCHASE = "CREATE TABLE purchase (customer_id BIGINT PRIMARY KEY, n INT)"


def test_queries_are_run_and_listed(client: Any) -> None:
    run(client, PURCHASE)
    low, high = LOW_IDS[0], HIGH_IDS[0]
    insert = f"INSERT INTO purchase (customer_id, n) VALUES ({low}, 1), ({high}, 2)"
    assert rows(client, f"VEXPLAIN QUERIES {insert}") == (
        (0, "commerce", "-80", f"INSERT INTO purchase (customer_id, n) VALUES ({low}, 1)"),
        (1, "commerce", "80-", f"INSERT INTO purchase (customer_id, n) VALUES ({high}, 2)"),
    )
    assert rows(client, "SELECT COUNT(*) FROM purchase") == ((2,),)
    run(client, "BEGIN")
    deleted = rows(client, "VEXPLAIN QUERIES DELETE FROM purchase LIMIT 1")
    assert [row[3] for row in deleted] == [
        "DELETE FROM purchase LIMIT 1",
        "DELETE FROM purchase LIMIT 0",
    ]
    assert rows(client, "SELECT customer_id FROM purchase") == ((high,),)
    run(client, "ROLLBACK")
    assert rows(client, "SELECT COUNT(*) FROM purchase") == ((2,),)
    merged = rows(client, "VEXPLAIN QUERIES SELECT n, COUNT(*) FROM purchase GROUP BY n")
    assert [row[2] for row in merged] == ["-80", "80-"]
    code, _ = refused(client, f"VEXPLAIN QUERIES {insert}")
    assert code == 1062
    assert rows(client, "SELECT 1") == ((1,),)
