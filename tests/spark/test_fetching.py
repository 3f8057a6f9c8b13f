"""What breaks a result in the middle is told as the driver tells it."""

import contextlib
import io
import socket
import threading
from typing import Any

import pymysql
import pytest

from streamfrom.spark.endpoint import DEPRECATE_EOF
from streamfrom.spark.fetching import fetch_columns


ROWS = b"\x02\x00\x00\x05\x01a" + b"\x01\x00\x00\x06\xfb"
# An OK packet in the place of an EOF packet, with a text.
OK = b"\x0b\x00\x00\x07\xfe\x00\x00\x02\x00\x00\x00done"
END = b"\x05\x00\x00\x07\xfe\x00\x00\x02\x00"
ERROR = b"\x19\x00\x00\x07\xff\x25\x05#70100Query was killed"


class Connection:
    """What of a driver's connection is used, with an answer of one column that has arrived."""

    def __init__(self, sent, error=None, streams=True):
        self._rfile: Any = self
        self._sock: Any = self
        self.sent = io.BytesIO(sent)
        self.error = error
        self.asked = None
        self.read_before_rows = 0
        self.server_capabilities = DEPRECATE_EOF
        self.client_flag = DEPRECATE_EOF if streams else 0

    def cursor(self):
        return contextlib.nullcontext(self)

    def mogrify(self, statement, values):
        return statement % values

    def _execute_command(self, command, text):
        self.asked = (command, text)

    def _read_packet(self):
        self.read_before_rows += 1
        return self

    def read_length_encoded_integer(self):
        return 1

    def read1(self, size):
        if self.error is not None:
            raise self.error
        return self.sent.read1(size)

    def recv_into(self, room):
        return self.sent.readinto1(room)


@pytest.mark.parametrize(("streams", "packets"), [(True, 2), (False, 3)])
@pytest.mark.parametrize("end", [END, OK])
def test_rows_come_with_their_nulls(streams, packets, end):
    connection = Connection(ROWS + end, streams=streams)
    columns = [one.to_pylist() for (one,) in fetch_columns(connection, "SELECT %s", [7])]
    assert columns == [[b"a", None]]
    assert connection.asked == (3, "SELECT 7")
    assert connection.read_before_rows == packets


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
    here.settimeout(120)
    connection = Connection(b"")
    with here, there, here.makefile("rb") as file:
        connection._rfile = file
        connection._sock = here
        there.sendall(ROWS + END)
        assert file.peek()  # as the driver's reads leave it: all is in its buffer
        ((column,),) = fetch_columns(connection, "SELECT word")
        assert column.to_pylist() == [b"a", None]
        # And of another answer a part: what comes behind it is read past the driver.
        there.sendall(ROWS[:3])
        assert file.peek()
        threading.Timer(0.05, there.sendall, (ROWS[3:] + END,)).start()
        ((column,),) = fetch_columns(connection, "SELECT word")
    assert column.to_pylist() == [b"a", None]
