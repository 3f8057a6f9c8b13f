from streamfrom.proxy.errors.shard_errors import BackendError
from streamfrom.proxy.errors.transaction_errors import (
    CommitRefused,
    PartialCommit,
    TransactionBroken,
)


def test_a_partial_commit_names_who_committed_and_who_did_not():
    error = PartialCommit(["-80"], ["80-"], "lost")
    assert str(error) == (
        "partial commit: committed on -80; not on 80- (lost); nothing undoes it: complete it by hand,"
        " or repeat work that may be repeated"
    )


def test_a_refused_commit_keeps_the_code_of_the_shard_that_refused():
    error = CommitRefused("-80", BackendError(1213, "40001", "Deadlock found"))
    assert error.wire_code() == (1213, "40001")
    assert "shard '-80' refused" in str(error)
    assert str(error).endswith("Deadlock found")


def test_a_broken_transaction_says_what_to_do_unless_it_is_over():
    assert str(TransactionBroken("x")).endswith("send ROLLBACK, then begin again")
    assert str(TransactionBroken("x", ended=True)).endswith("nothing was committed")
