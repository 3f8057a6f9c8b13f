from streamfrom.proxy.errors.access_errors import AccessDenied, NoSuchThread, ServerShutdown


def test_sentences_are_those_of_mysql():
    assert str(AccessDenied("x", "h", has_password=True)) == (
        "Access denied for user 'x'@'h' (using password: YES)"
    )
    assert str(NoSuchThread(7)) == "Unknown thread id: 7"
    assert str(ServerShutdown()) == "Server shutdown in progress"
