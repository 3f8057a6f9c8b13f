from streamfrom.proxy.errors.shard_errors import (
    BackendError,
    BackendUnavailable,
    PoolTimeout,
    login_refused,
)


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


def test_a_refused_readonly_account_is_told_as_such():
    error = login_refused(
        "shop", "-80", BackendError(1045, "28000", "Access denied for user 'r'")
    )
    assert error.wire_code() == (1045, "28000")
    assert str(error) == (
        "the readonly account of shard '-80' of keyspace 'shop' cannot log in (Access denied for"
        " user 'r'); readonly users are served by no other: have the operator run streamfrom check"
    )


def test_a_server_that_is_full_says_nothing_of_the_account():
    full = BackendError(1040, "08004", "Too many connections")
    assert login_refused("shop", "-80", full) is full
