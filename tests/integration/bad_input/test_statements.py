"""Streams and acknowledgements that make no sense are errors; nothing is delivered or lost."""

import contextlib
from typing import Any

import pymysql
import pytest

from tests.cases import in_turn
from tests.fixtures.streams import answers, refuses, run, value
from tests.integration.conftest import Queue


pytestmark = pytest.mark.db


class TestStatements:
    @pytest.fixture
    def connection(self, queue: Queue) -> Any:
        made = queue.create()
        run(made, "CREATE TABLE ordinary (id BIGINT PRIMARY KEY)")
        return made

    @in_turn
    @pytest.mark.parametrize(
        ("sql", "code", "words"),
        [
            ("STREAM * FROM nosuch", 1146, "message table 'nosuch' not found in keyspace"),
            ("STREAM * FROM ordinary", 1146, "message table 'ordinary' not found in keyspace"),
            ("STREAM * FROM nosuch.t", 1049, "Unknown database 'nosuch'"),
            ("STREAM nosuch FROM my_message", 1054, "Unknown column 'nosuch' in"),
            ("STREAM * FROM my_message WHERE id > 1", 1064, "takes the key of the table"),
            ("STREAM * FROM my_message WHERE id = 1", 1210, "and my_message has none: ALTER"),
            ("STREAM * FROM my_message; SELECT 1", 1064, "syntax"),
            ("STREAM * FROM my_message m", 1064, "syntax"),
        ],
    )
    def test_a_stream_of_what_cannot_be_streamed(self, connection, sql, code, words):
        refuses(connection, sql, code, words)
        assert value(connection, "SELECT 1") == 1

    def test_an_ack_with_a_string_for_a_number(self, queue: Queue) -> None:
        connection = queue.create(ack_wait=0.4, more=",vt_max_backoff=0.4")
        stream = queue.stream()
        run(connection, "INSERT INTO my_message (id) VALUES (1), (4)")
        stream.comes(1, 4)
        ack = "UPDATE my_message SET time_acked = NOW() WHERE id IN"
        assert run(connection, f"{ack} ('1')") == 1
        stream.comes(4)
        assert run(connection, f"{ack} ('4')") == 1
        stream.nothing_new(connection)
        for nonsense in ("('x')", "('4x')", "(NULL)", "(99)", "(4)", "(-1)", "(1e30)", "('')"):
            # Strict servers refuse some of these in words of their own.
            with contextlib.suppress(pymysql.err.DataError, pymysql.err.OperationalError):
                assert run(connection, f"{ack} {nonsense}") == 0


def test_a_statement_that_is_not_utf_8_reaches_the_server_as_it_is(plain: Queue) -> None:
    client = plain.connect()
    assert answers(client, b"SELECT HEX(_binary'\xff\xfe\x80') AS h") == [(("FFFE80",),)]
    for sql in (b"SELECT \xff\xfe FROM \xc3\x28", b"STREAM * FROM \xff\xfe", b"USE \xff\xfe"):
        (code,) = answers(client, sql)
        assert isinstance(code, int), sql
    assert value(client, "SELECT 1") == 1


def test_a_comment_alone_is_answered_as_by_a_server(plain: Queue) -> None:
    client = plain.connect()
    for sql in ("/* nothing */", "-- nothing", "# nothing", "/**/ ;"):
        assert run(client, sql) == 0, sql
