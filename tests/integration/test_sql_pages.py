"""The SQL of docs/sql and docs/concepts, as it is printed: each statement runs, on tables of the names that the pages use."""

import re

import pytest

from tests.fixtures.database_servers import execute, names
from tests.fixtures.running_proxy import (
    HERE,
    RunningProxy,
    by_hash,
    keyspace_toml,
    write_vschema,
)
from tests.fixtures.streams import run
from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db

PAGES = HERE / "docs"
MESSAGES = (
    *(f"concepts/{page.stem}" for page in sorted((PAGES / "concepts").glob("*.md"))),
    "sql/message-tables",
    "sql/queues",
    "sql/stream",
    "sql/messages",
    "sql/times",
    "sql/keyspaces",
    "sql/show",
)
TABLES = """
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id BIGINT, country CHAR(2), total DECIMAL(10,2), paid INT, note VARCHAR(20))
CREATE TABLE items (order_id BIGINT, price DECIMAL(10,2), note VARCHAR(20))
CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR(20), country CHAR(2), is_active TINYINT)
CREATE TABLE archive (id BIGINT PRIMARY KEY, total DECIMAL(10,2))
CREATE TABLE countries (code CHAR(2) PRIMARY KEY)
CREATE QUEUE newsletter (subject VARCHAR(20))
CREATE TABLE a (id BIGINT PRIMARY KEY)
CREATE TABLE b (id BIGINT PRIMARY KEY)
""".strip().splitlines()


def statements(page: str) -> list[str]:
    """Return each statement of the SQL blocks of *page*, without its comment."""
    blocks = re.findall(
        r"^```sql\n(.*?)^```$", (PAGES / f"{page}.md").read_text(), re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"[ \t]+-- .*$", "", "".join(blocks), flags=re.MULTILINE)
    return [each.strip() for each in re.split(r";\n", text) if each.strip()]


def ended(sql: str) -> str:
    endless = sql.startswith("STREAM") and "LIMIT" not in sql
    return f"{sql} LIMIT 1 WAIT 0" if endless else sql


@pytest.mark.parametrize("page", MESSAGES)
def test_statements_on_messages_run(cluster: SharedCluster, page: str) -> None:
    client = cluster.proxy.connect(database="plain", autocommit=True)
    run(client, statements("sql/message-tables")[0])
    run(client, "INSERT INTO my_message (id) VALUES (7), (8)")
    found = statements(page)
    assert found
    for sql in found:
        made = re.match(r"CREATE (?:TABLE|QUEUE) (\w+)", sql)
        if made:
            run(client, f"DROP TABLE IF EXISTS {made[1]}")
        run(client, ended(sql))


@pytest.fixture
def shop(servers, tmp_path, start_proxy):
    """Two sharded keyspaces with the same tables: orders are by id in one, by customer in the other."""
    others = {"items": "order_id", "customers": "id", "archive": "id", "a": "id", "b": "id"}
    config = ""
    made = []
    for keyspace, orders in (("commerce", "id"), ("by_customer", "customer_id")):
        database = next(names)
        made.append(database)
        for server in servers:
            execute(server, f"CREATE DATABASE {database}")
        folder = tmp_path / keyspace
        folder.mkdir()
        vschema = by_hash(orders=orders, **others)
        vschema["tables"]["countries"] = {"type": "reference"}
        path = write_vschema(folder, vschema)
        config += keyspace_toml(keyspace, servers, database, path)
    yield start_proxy(config)
    for database in made:
        for server in servers:
            execute(server, f"DROP DATABASE {database}")


def test_statements_over_shards_run(shop: RunningProxy) -> None:
    clients = {
        name: shop.connect(database=name, autocommit=True)
        for name in ("commerce", "by_customer")
    }
    for client in clients.values():
        for sql in TABLES:
            run(client, sql)
    found = statements("sql/routing")
    assert len(found) > 15
    for sql in found:
        run(clients["by_customer" if "customer_id" in sql else "commerce"], sql)
