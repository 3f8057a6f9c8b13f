"""The proxy's address, the types of its columns, and what now is."""

import ast
from pathlib import Path

import pytest

from streamfrom.spark.endpoint import (
    NOW_US,
    Endpoint,
    parse_endpoint,
    shards_of,
    url_of,
)
from streamfrom.spark.errors import JobError, RequestError
from tests.cases import cases
from tests.fixtures.database_servers import execute


def test_an_endpoint_is_read_and_its_password_is_never_shown():
    endpoint = parse_endpoint("mysql://app@db:3306/commerce", "secret")
    assert (endpoint.host, endpoint.port, endpoint.keyspace) == ("db", 3306, "commerce")
    assert "secret" not in repr(endpoint)


def test_an_address_is_written_as_it_is_read(tmp_path):
    ca = tmp_path / "a b.pem"
    ca.touch()
    for endpoint in (
        Endpoint("db", 3306, "app", "commerce"),
        Endpoint("::1", 1, "a@b", "käse", ssl_ca=str(ca)),
    ):
        assert parse_endpoint(url_of(endpoint)) == endpoint
    assert "secret" not in url_of(Endpoint("db", 1, "u", "ks", "secret"))


@cases(url=str, told=str)
def test_anything_else_is_refused_with_the_right_form_and_a_cure(url, told):
    with pytest.raises(RequestError, match=told) as refusal:
        parse_endpoint(url)
    assert "mysql://user@host:port/keyspace" in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_a_proxy_that_is_not_there_is_named():
    with pytest.raises(JobError, match=r"the proxy at 127\.0\.0\.1:1 cannot be reached"):
        parse_endpoint("mysql://u@127.0.0.1:1/ks").connect()


def test_shards_are_told_in_order_and_a_database_without_any_is_named(monkeypatch):
    told = [(b"commerce/-80",), ("commerce/80-",), ("other/0",)]
    monkeypatch.setattr(Endpoint, "ask", lambda *_: told)
    assert shards_of(Endpoint("db", 3306, "app", "commerce")) == ["-80", "80-"]
    with pytest.raises(RequestError, match="there are commerce, other"):
        shards_of(Endpoint("db", 3306, "app", "information_schema"))


@cases(module=str, sessions=ast.literal_eval)
def test_a_session_that_tells_or_takes_rows_is_in_utc_whatever_its_server_is(module, sessions):
    """Text of a TIMESTAMP means one moment then, also in the hour that a zone has twice."""
    tree = ast.parse((Path(__file__).parents[2] / "spark" / module).read_text())
    in_utc = [
        call
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "connect"
        and "IN_UTC"
        in {
            getattr(given, "id", "")
            for given in [*call.args, *(k.value for k in call.keywords)]
        }
    ]
    assert len(in_utc) == sessions


# A zone that goes from summer time, two hours, to winter time, one, at this moment, and what a server stores of such a zone.
AUTUMN_S = 1_792_890_000
ZONE = (
    "INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (9001, 'N')",
    "INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Test/Autumn', 9001)",
    "INSERT INTO mysql.time_zone_transition_type VALUES (9001, 0, 7200, 1, 'S'), (9001, 1, 3600, 0, 'W')",
    f"INSERT INTO mysql.time_zone_transition VALUES (9001, 0, 0), (9001, {AUTUMN_S}, 1)",
)


@pytest.fixture
def autumn(server):
    """A zone that has an hour twice, for as long as the test runs."""
    for statement in ZONE:
        execute(server, statement)
    yield "Test/Autumn"
    for table in ("", "_name", "_transition_type", "_transition"):
        execute(server, f"DELETE FROM mysql.time_zone{table} WHERE Time_zone_id = 9001")


@pytest.mark.db
def test_a_server_knows_what_now_is_in_the_hour_that_its_zone_has_twice(
    server, connect, autumn
):
    session = connect(server).cursor()
    session.execute("SET time_zone = %s", (autumn,))
    told = []
    for moment_s in (AUTUMN_S - 1800, AUTUMN_S + 1800):
        session.execute("SET timestamp = %s", (moment_s,))
        session.execute(f"SELECT {NOW_US}, NOW()")
        now_us, clock = session.fetchone()
        assert now_us == moment_s * 10**6
        told.append(clock)
    assert told[0] == told[1]
