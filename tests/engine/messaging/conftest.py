"""Connections to servers, as the engine has them."""

import pytest

from tests.engine.messaging.sql_client import Client
from tests.engine.messaging.sqlite_client import SqliteClient


@pytest.fixture
def client(connect, server, database):
    """A connection such as polls have."""
    return Client(connect(server, database=database, charset="utf8mb4", use_unicode=False))


@pytest.fixture
def claimer(connect, server, database):
    """A connection such as claims have."""
    options = {"charset": "utf8mb4", "use_unicode": False, "autocommit": False}
    connection = connect(server, database=database, **options)
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    yield Client(connection)
    connection.close()  # before the database goes, which waits for open transactions


@pytest.fixture
def other(connect, server, database):
    """Somebody else's transaction."""
    connection = connect(server, database=database, autocommit=False)
    yield connection
    connection.close()


@pytest.fixture
def sqlite():
    """A database in memory, without tables."""
    client = SqliteClient()
    yield client
    client.connection.close()
