from streamfrom.proxy.errors.shard_errors import (
    BackendError,
    CommitRefused,
    PartialCommit,
    TransactionBroken,
)


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
