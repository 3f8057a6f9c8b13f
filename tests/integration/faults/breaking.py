"""What tests of faults share: ids, a crowded table, work in a thread, what a server runs."""

from collections.abc import Callable
from typing import Any

from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import message_table, run


LOW, HIGH = 1, 4  # ids on shard -80 and on shard 80-
SECOND_NS = 10**9
Servers = tuple[DatabaseServer, DatabaseServer]
StartFaulty = Callable[..., RunningProxy]


def ordinary_user(servers: Servers, database: str) -> str:
    """Make a user whom read_only binds, unlike root, and return its name; proxies on its account find each other."""
    for server in servers:
        execute(server, "CREATE USER IF NOT EXISTS app@'%'")
        for each in (database, "streamfrom"):
            execute(server, f"GRANT ALL ON {each}.* TO app@'%'")
    return "app"


def create(proxy: RunningProxy, **options: Any) -> Any:
    connection = proxy.connect(database="commerce", autocommit=True)
    run(connection, message_table(**options))
    return connection


def insert(connection: Any, *idents: int) -> None:
    values = ", ".join(f"({ident})" for ident in idents)
    run(connection, f"INSERT INTO my_message (id) VALUES {values}")
