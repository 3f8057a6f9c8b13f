"""What tests of faults share: ids, a crowded table, work in a thread, what a server runs."""

import threading
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
    """Make a user whom read_only binds, unlike root, and return its name."""
    for server in servers:
        execute(server, "CREATE USER IF NOT EXISTS app@'%'")
        execute(server, f"GRANT ALL ON {database}.* TO app@'%'")
    return "app"


def create(proxy: RunningProxy, **options: Any) -> Any:
    """Create the message table and return an autocommitting connection."""
    connection = proxy.connect(database="commerce", autocommit=True)
    run(connection, message_table(**options))
    return connection


def insert(connection: Any, *idents: int) -> None:
    values = ", ".join(f"({ident})" for ident in idents)
    run(connection, f"INSERT INTO my_message (id) VALUES {values}")


def in_thread(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start *work* and return a function that waits for its result."""
    results: list[Any] = []

    def keep() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()

    def result(seconds: float = 40) -> Any:
        thread.join(seconds)
        assert results, "it hangs"
        return results[0]

    return result


def running(server: DatabaseServer, text: str) -> list[tuple[Any, ...]]:
    """Return the server's connections that run something with *text* in it."""
    found = execute(server, "SELECT id, info FROM information_schema.processlist")
    return [row for row in found if row[1] and text in row[1] and "processlist" not in row[1]]
