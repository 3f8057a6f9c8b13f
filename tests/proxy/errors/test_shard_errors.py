from streamfrom.proxy.errors.shard_errors import (
    BackendError,
    BackendUnavailable,
    PoolTimeout,
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
