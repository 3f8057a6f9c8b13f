import inspect
import re

import pytest

from proxy import errors
from proxy.errors import (
    AccessDenied,
    BackendError,
    BackendUnavailable,
    CommandDenied,
    DatabaseAccessDenied,
    NoSuchThread,
    OutOfOrder,
    PacketTooLarge,
    PoolTimeout,
    ProxyError,
    ServerShutdown,
    UnknownDatabase,
    WireError,
)
from sqlparse_ext.errors import SqlError, StreamfromError, Unsupported


CLASSES = [
    member
    for _, member in inspect.getmembers(errors, inspect.isclass)
    if issubclass(member, ProxyError)
]


@pytest.mark.parametrize("error", CLASSES)
def test_every_error_has_a_place_in_the_drawing(error):
    assert re.search(rf"\b{error.__name__}\b", errors.__doc__), f"{error.__name__} is not drawn"


@pytest.mark.parametrize(
    "error", [error for error in CLASSES if error.wire_code is StreamfromError.wire_code]
)
def test_the_drawing_tells_the_right_code(error):
    drawn = re.search(rf"\b{error.__name__} +(\d+)/(\w{{5}})", errors.__doc__)
    if drawn:
        assert (str(error.mysql_code), error.sqlstate) == drawn.groups()


@pytest.mark.parametrize("error", [*CLASSES, SqlError, Unsupported])
def test_every_code_is_one_that_mysql_could_send(error):
    assert 1000 <= error.mysql_code < 1 << 16
    assert re.fullmatch("[0-9A-Z]{5}", error.sqlstate)
    assert issubclass(error, StreamfromError)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            AccessDenied("x", "10.0.0.1", has_password=True),
            "Access denied for user 'x'@'10.0.0.1' (using password: YES)",
        ),
        (
            AccessDenied("x", "h", has_password=False),
            "Access denied for user 'x'@'h' (using password: NO)",
        ),
        (UnknownDatabase("x"), "Unknown database 'x'"),
        (
            DatabaseAccessDenied("x", "h", "ks"),
            "Access denied for user 'x'@'h' to database 'ks'",
        ),
        (
            CommandDenied("INSERT", "x", "h", "t"),
            "INSERT command denied to user 'x'@'h' for table 't'",
        ),
        (NoSuchThread(7), "Unknown thread id: 7"),
        (ServerShutdown(), "Server shutdown in progress"),
        (PacketTooLarge(9), "Got a packet bigger than 'max_allowed_packet' bytes"),
        (OutOfOrder(3, 1), "Got packets out of order"),
        (Unsupported("window functions"), "unsupported: window functions"),
    ],
)
def test_sentences_are_those_of_mysql(error, sentence):
    assert str(error) == sentence


def test_a_shards_failure_names_the_shard_and_what_to_do():
    for error in (
        BackendUnavailable("commerce", "-80", "connection refused"),
        PoolTimeout("commerce", "-80", 5.0),
    ):
        assert "'-80'" in str(error)
        assert "'commerce'" in str(error)
        assert "try again" in str(error)


def test_a_backends_own_error_keeps_its_code_and_words():
    error = BackendError(1062, "23000", "Duplicate entry '1' for key 'PRIMARY'")
    assert error.wire_code() == (1062, "23000")
    assert str(error) == "Duplicate entry '1' for key 'PRIMARY'"


def test_what_breaks_the_protocol_is_a_wire_error():
    assert issubclass(PacketTooLarge, WireError)
    assert issubclass(OutOfOrder, WireError)
