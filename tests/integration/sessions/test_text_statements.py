"""PREPARE, EXECUTE and DEALLOCATE as text, where rows may be on several shards and where they are on one."""

import ast
import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.cases import cases, in_turn
from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import refused, reset, rows, run, value
from tests.integration.sessions.crowd import HIGH, LOW, crowd


@pytest.fixture(params=["commerce", "plain"])
def client(request: pytest.FixtureRequest, tight: RunningProxy) -> Any:
    connection = tight.connect(database=request.param, autocommit=True)
    run(connection, "CREATE TABLE IF NOT EXISTS customer (id BIGINT PRIMARY KEY, n INT)")
    return connection


@pytest.mark.parametrize("client", ["commerce"], indirect=True)
def test_the_values_route_an_execution(client, servers, sharded_database):
    run(client, "PREPARE put FROM 'INSERT INTO customer (id, n) VALUES (?, ?)'")
    for ident in (LOW, HIGH):
        run(client, f"SET @id = {ident}, @n = {ident * 10}")
        assert run(client, "EXECUTE put USING @id, @n") == 1
    for server, ident in zip(servers, (LOW, HIGH), strict=True):
        found = execute(server, f"SELECT id, n FROM {sharded_database}.customer")
        assert found == ((ident, ident * 10),)
    run(client, "SET @sql = 'SELECT id FROM customer WHERE n > ? ORDER BY id DESC'")
    run(client, "PREPARE `Get` FROM @sql")
    run(client, "SET @least = 0")
    assert rows(client, "EXECUTE get USING @least") == ((HIGH,), (LOW,))
    run(client, "BEGIN")
    run(client, "PREPARE put FROM 'UPDATE customer SET n = ?'")
    assert run(client, "EXECUTE put USING @least") == 2
    client.rollback()
    assert rows(client, "EXECUTE get USING @least") == ((HIGH,), (LOW,))


def test_values_keep_their_types(client: Any) -> None:
    run(client, "SET @i=-5, @d=1.50, @e=2.5e0, @s='it''s \\\\ ü', @b=x'00ff', @z=NULL")
    run(client, "PREPARE p FROM 'SELECT ?, ?, ?, ?, ?, ?, ? + 1'")
    assert rows(client, "EXECUTE p USING @i, @d, @e, @s, @b, @z, @i") == (
        (-5, Decimal("1.50"), 2.5, "it's \\ ü", b"\x00\xff", None, -4),
    )
    run(client, "SET @day = DATE '2026-01-02'")
    run(client, "PREPARE p FROM 'SELECT CAST(? AS DATE)'")
    assert value(client, "EXECUTE p USING @day") == datetime.date(2026, 1, 2)


def test_each_client_has_its_own_and_a_reset_has_none(tight: RunningProxy) -> None:
    first, second = crowd(tight, 2, database="commerce")
    run(first, "PREPARE p FROM 'SELECT 1'")
    run(second, "PREPARE p FROM 'SELECT 2'")
    assert [value(each, "EXECUTE p") for each in (first, second)] == [1, 2]
    run(first, "DEALLOCATE PREPARE p")
    unknown = (1243, "Unknown prepared statement handler (p) given to EXECUTE")
    assert refused(first, "EXECUTE p") == unknown
    assert value(second, "EXECUTE p") == 2
    reset(second)
    assert refused(second, "EXECUTE p") == unknown


@in_turn
@cases(sql=str, code=ast.literal_eval)
def test_what_is_wrong_is_told_and_the_session_goes_on(client, sql, code):
    run(client, "PREPARE two FROM 'SELECT ?, ?'")
    run(client, "PREPARE p FROM 'SELECT 3'")
    assert refused(client, sql)[0] == code
    run(client, "SET @a = 1, @b = 2")
    assert rows(client, "EXECUTE two USING @a, @b") == ((1, 2),)
    if sql.startswith("PREPARE") and code != 1235:
        # As on a server: the name was free before the text was looked at.
        assert refused(client, "EXECUTE p")[0] == 1243


@pytest.mark.parametrize("client", ["commerce"], indirect=True)
def test_it_stays_where_it_was_prepared(client: Any) -> None:
    run(client, "PREPARE p FROM 'SELECT COUNT(*) FROM customer'")
    run(client, "USE `commerce:-80`")
    assert refused(client, "EXECUTE p")[0] == 1235
    run(client, "USE commerce")
    assert value(client, "EXECUTE p") == 0


@pytest.mark.parametrize("client", ["plain"], indirect=True)
def test_a_procedure_may_assign_to_its_parameters(client: Any) -> None:
    run(client, "CREATE PROCEDURE twice (IN a INT, OUT b INT) SET b = 2 * a")
    run(client, "PREPARE p FROM 'CALL twice(?, ?)'")
    run(client, "SET @a = 21")
    run(client, "EXECUTE p USING @a, @b")
    assert value(client, "SELECT @b") == 42
    run(client, "DROP PROCEDURE twice")
