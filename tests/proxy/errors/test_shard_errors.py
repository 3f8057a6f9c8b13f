from streamfrom.proxy.errors.shard_errors import (
    BackendError,
    BackendUnavailable,
    CommitRefused,
    PartialCommit,
    PoolTimeout,
    TransactionBroken,
    connect_refused,
)


def test_a_failure_names_its_shard_and_what_to_do_and_a_servers_own_error_keeps_its_code():
    for error in (
        BackendUnavailable("commerce", "-80", "connection refused"),
        PoolTimeout("commerce", "-80", 5.0),
    ):
        assert "'-80'" in str(error)
        assert "'commerce'" in str(error)
        assert "try again" in str(error)
    own = BackendError(1062, "23000", "Duplicate entry '1' for key 'PRIMARY'")
    assert own.wire_code() == (1062, "23000")
    assert str(own) == "Duplicate entry '1' for key 'PRIMARY'"


def test_a_refused_login_names_the_shard_or_the_proxy_that_a_command_asks():
    refusal = BackendError(1045, "28000", "Access denied")
    for keyspace, named in (
        ("commerce", "shard '-80' of keyspace 'commerce' at db:7"),
        ("", "db:7"),
    ):
        error = connect_refused(keyspace, "-80", "db:7", refusal)
        assert isinstance(error, BackendError)
        assert (error.code, str(error)) == (1045, f"{named}: Access denied")
    offline = BackendError(3032, "HY000", "The server is currently in offline mode")
    error = connect_refused("commerce", "-80", "db:7", offline)
    assert isinstance(error, BackendUnavailable)
    assert error.reason == "db:7: The server is currently in offline mode"


def test_who_committed_and_what_to_do_is_named_under_the_code_of_the_shard_that_refused():
    error = PartialCommit(["-80"], ["80-"], "lost")
    assert str(error) == (
        "partial commit: committed on -80; not on 80- (lost); nothing undoes it: complete it by hand,"
        " or repeat work that may be repeated"
    )
    refused = CommitRefused("-80", BackendError(1213, "40001", "Deadlock found"))
    assert refused.wire_code() == (1213, "40001")
    assert "shard '-80' refused" in str(refused)
    assert str(refused).endswith("Deadlock found")
    assert str(TransactionBroken("x")).endswith("send ROLLBACK, then begin again")
    assert str(TransactionBroken("x", ended=True)).endswith("nothing was committed")
