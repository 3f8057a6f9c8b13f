"""Two deployments on one database that did not mean to be one."""

import pytest

from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import message_table, run


pytestmark = [pytest.mark.db, pytest.mark.one_server]


def config(database: str, server: DatabaseServer, fleet: str) -> str:
    return keyspace_toml(database, [server]) + f'[fleet]\nname = "{fleet}"\n'


def test_a_member_of_another_fleet_sends_nothing_says_why_and_takes_over_when_the_first_is_gone(
    server, database, start_proxy, consume
):
    execute(server, message_table(poller_interval=600), database=database)
    shop = start_proxy(config(database, server, "shop"))
    shop.wait_for_log("is dispatched from here")
    stock = start_proxy(config(database, server, "stock"))
    stock.wait_for_log("fleet 'shop'")
    at_shop = consume(shop, database=database)
    at_stock = consume(stock, database=database)
    producer = shop.connect(database=database, autocommit=True)
    run(producer, "INSERT INTO my_message (id) VALUES (1)")
    assert at_shop.ids(1) == [1]
    assert at_stock.poll(0.5) is None
    run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
    # Neither lists nor ends the other's clients.
    with stock.connect().cursor() as cursor:
        cursor.execute("SHOW PROCESSLIST")
        assert at_shop.id not in {row[0] for row in cursor.fetchall()}
    assert shop.stop() == 0
    stock.wait_for_log("is dispatched from here")
    run(
        stock.connect(database=database, autocommit=True),
        "INSERT INTO my_message (id) VALUES (2)",
    )
    assert at_stock.ids(1) == [2]
