import pytest

from streamfrom.proxy.errors.access_errors import (
    AccessDenied,
    NoSuchThread,
    ServerShutdown,
    UserLimitReached,
)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (AccessDenied("x", "10.0.0.1", has_password=True), "Access denied for user 'x'@'10.0.0.1' (using password: YES)"),
        (AccessDenied("x", "h", has_password=False), "Access denied for user 'x'@'h' (using password: NO)"),
        (UserLimitReached("x", 3), "User 'x' has exceeded the 'max_connections' resource (current value: 3)"),
        (NoSuchThread(7), "Unknown thread id: 7"),
        (ServerShutdown(), "Server shutdown in progress"),
    ],
)  # fmt: skip
def test_sentences_are_those_of_mysql(error, sentence):
    assert str(error) == sentence
