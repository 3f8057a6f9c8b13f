"""What breaks a result in the middle is told as the driver tells it."""

import io
import socket
from typing import Any

import pymysql
import pytest

from spark.fetching import fetch_columns


ROWS = b"\x02\x00\x00\x05\x01a" + b"\x01\x00\x00\x06\xfb"
END = b"\x05\x00\x00\x07\xfe\x00\x00\x02\x00"
ERROR = b"\x19\x00\x00\x07\xff\x25\x05#70100Query was killed"


class Connection:
    """What of a driver's connection is used, with an answer that has arrived."""

    def __init__(self, sent, error=None):
        self._result = self
        self.unbuffered_active = True
        self.description = ("word",)
        self._rfile: Any = self
        self.sent = io.BytesIO(sent)
        self.error = error
        self.asked = None

    def cursor(self, kind):
        assert kind is pymysql.cursors.SSCursor
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        assert not self.unbuffered_active

    def execute(self, statement, values):
        self.asked = (statement, values)

    def read1(self, size):
        if self.error is not None:
            raise self.error
        return self.sent.read1(size)


def test_rows_come_with_their_nulls():
    connection = Connection(ROWS + END)
    columns = [one.to_pylist() for (one,) in fetch_columns(connection, "SELECT word", [7])]
    assert columns == [[b"a", None]]
    assert connection.asked == ("SELECT word", (7,))


@pytest.mark.parametrize(
    ("connection", "code"),
    [
        (Connection(ROWS), 2013),
        (Connection(ROWS + ERROR), 1317),
        (Connection(b"", ConnectionResetError("reset")), 2013),
        (Connection(b"\x01\x00\x00\x05\x05" + END), 2027),
    ],
)
def test_a_result_that_breaks_off_is_an_error_of_the_driver(connection, code):
    with pytest.raises(pymysql.err.MySQLError) as raised:
        list(fetch_columns(connection, "SELECT word"))
    assert raised.value.args[0] == code


def test_what_has_arrived_already_is_not_waited_for():
    here, there = socket.socketpair()
    here.settimeout(30)
    connection = Connection(b"")
    with here, there, here.makefile("rb") as file:
        connection._rfile = file
        there.sendall(ROWS + END)
        assert file.peek()  # as the driver's reads leave it: all is in its buffer
        ((column,),) = fetch_columns(connection, "SELECT word")
    assert column.to_pylist() == [b"a", None]
