"""LAST_INSERT_ID() of a client whose connection has gone to others is what one server says on one connection.

The OK cannot tell it: it has an insert id for rows that name their ids themselves as well, or that a trigger names,
and LAST_INSERT_ID() stays as it was then. So the server is asked when a connection changes hands.
"""

import pymysql
import pytest
from pymysql.connections import Connection

from tests.fixtures.streams import run, value
from tests.integration.sessions.crowd import crowd


pytestmark = pytest.mark.db

BEFORE = 4242  # what the client's LAST_INSERT_ID() is before the statement


def told(client: "Connection[bytes]", sql: str) -> int:
    """Return the insert id in the answer to *sql*, 0 also for an error."""
    with client.cursor() as cursor:
        try:
            cursor.execute(sql)
        except pymysql.Error:
            return 0
        return int(cursor.lastrowid or 0)


STATEMENTS = (
    "INSERT INTO {t} (v) VALUES (1)",  # one row
    "INSERT INTO {t} (v) VALUES (1), (2), (3)",  # the first of several
    "INSERT INTO {t} VALUES (100, 1)",  # a row that names its id
    "INSERT INTO {t} VALUES (NULL, 1), (200, 2)",  # made, then named
    "INSERT INTO {t} VALUES (300, 1), (NULL, 2)",  # named, then made
    "INSERT INTO {t} VALUES (0, 1)",  # zero
    "INSERT INTO {t} (v) SELECT v FROM {t}",  # rows of a query
    "INSERT INTO {t}_named (v) VALUES (5)",  # a trigger names it
    "INSERT INTO {t}_logged (v) VALUES (5)",  # a trigger makes another one
    "INSERT INTO {t}_plain VALUES (7)",  # a table without
    "INSERT INTO {t}_plain VALUES (LAST_INSERT_ID(55))",  # by the function
    "UPDATE {t} SET v = LAST_INSERT_ID(77) WHERE id = 1",  # an UPDATE
    "UPDATE {t} SET v = LAST_INSERT_ID(77) WHERE id = 9",  # no row of it
    "INSERT IGNORE INTO {t} VALUES (1, 3)",  # ignored
    "INSERT INTO {t} VALUES (1, 3) ON DUPLICATE KEY UPDATE v = 4",  # upserted
    "INSERT INTO {t} VALUES (1, 3) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), v = 5",  # upserted by the function
    "REPLACE INTO {t} (v) VALUES (9)",  # replaced
    "INSERT INTO {t} VALUES (NULL, 1), (1, 2)",  # failed at its second row
    "CALL {t}_fill()",  # a procedure
)


def test_it_is_what_one_server_says_also_when_others_had_the_connection(
    tight, sharded_database, servers, connect
):
    client, *others = crowd(tight, 4)
    direct = connect(servers[1], database=f"{sharded_database}_plain", autocommit=True)
    both = (("through", client), ("straight", direct))
    for table, one in both:
        for made in (
            "CREATE TABLE {t} (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)",
            "CREATE TABLE {t}_others LIKE {t}",
            "CREATE TABLE {t}_plain (id BIGINT PRIMARY KEY)",
            "CREATE TABLE {t}_named LIKE {t}",
            "CREATE TABLE {t}_logged LIKE {t}",
            "INSERT INTO {t} (v) VALUES (1)",
            "CREATE TRIGGER {t}_a BEFORE INSERT ON {t}_named FOR EACH ROW SET NEW.id = NEW.v + 900",
            "CREATE TRIGGER {t}_b AFTER INSERT ON {t}_logged FOR EACH ROW INSERT INTO {t} (v) VALUES (8)",
            "CREATE PROCEDURE {t}_fill() INSERT INTO {t} (v) VALUES (6)",
        ):
            run(one, made.format(t=table))
    for sql in STATEMENTS:
        found = []
        for table, one in both:
            run(one, f"SET last_insert_id = {BEFORE}")
            answer = told(one, sql.format(t=table))
            for other in others:
                # Each of them has one of the two connections, and makes an id of its own there.
                run(other, "INSERT INTO through_others (v) VALUES (2), (3)")
            found.append((answer, value(one, "SELECT LAST_INSERT_ID()")))
        assert found[0] == found[1], sql
    for table, one in both:
        run(one, f"DROP PROCEDURE {table}_fill")
