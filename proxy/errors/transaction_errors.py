"""How a transaction over several shards can end, other than well."""

from __future__ import annotations

from streamfrom.proxy.errors.base import ProxyError
from streamfrom.proxy.errors.shard_errors import BackendError


class TransactionSpansShards(ProxyError):
    """A second shard in one transaction where the configuration forbids it."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(
            f"this transaction already uses shard '{first}' and may not use '{second}':"
            ' transaction_mode is "single"; roll back, or keep to one shard'
        )


class TransactionBroken(ProxyError):
    """A shard of the transaction was lost, so the transaction is rolled back everywhere."""

    def __init__(self, reason: str, *, ended: bool = False) -> None:
        fix = "nothing was committed" if ended else "send ROLLBACK, then begin again"
        super().__init__(f"the transaction was rolled back because {reason}; {fix}")


class PartialCommit(ProxyError):
    """A commit over several shards took effect on some of them only."""

    def __init__(self, committed: list[str], failed: list[str], reason: str) -> None:
        super().__init__(
            f"partial commit: committed on {', '.join(committed)};"
            f" not on {', '.join(failed)} ({reason}); nothing undoes it: complete it by hand, or"
            " repeat work that may be repeated"
        )


class NoDecisionTable(ProxyError):
    """A shard has no place for the outcome of a transaction over several shards."""

    def __init__(self, table: str, shard: str, reason: str) -> None:
        super().__init__(
            f"a transaction over several shards needs table '{table}' on shard '{shard}', as"
            f' transaction_mode is "twopc": {reason}; `streamfrom check` says what is missing'
        )


class CommitRefused(BackendError):
    """One shard refused to commit in two phases, so all have rolled back; with its code."""

    def __init__(self, shard: str, error: BackendError) -> None:
        super().__init__(
            error.code,
            error.state,
            f"shard '{shard}' refused to commit, and the transaction was rolled back on every"
            f" shard: {error}",
        )


class CommitUnknown(ProxyError):
    """The shard that decides was lost in the middle of its commit, and has not come back."""

    def __init__(self, decides: str, prepared: list[str]) -> None:
        super().__init__(
            f"whether the transaction is committed is not known: shard '{decides}' was lost while"
            f" it committed. It is prepared on {', '.join(prepared)} and will be completed or"
            f" rolled back there, as '{decides}' did, once that shard answers: check before you"
            " repeat it"
        )


class CommitPending(ProxyError):
    """The transaction is committed, but some shards have not committed yet."""

    def __init__(self, pending: list[str], reason: str) -> None:
        super().__init__(
            f"the transaction is committed, but not to be seen yet on {', '.join(pending)}"
            f" ({reason}); it is prepared there and will be completed: do not repeat it"
        )


class NoSuchSavepoint(ProxyError):
    """A savepoint to release or to go back to that the transaction has not set."""

    mysql_code = 1305  # ER_SP_DOES_NOT_EXIST
    sqlstate = "42000"
    remedy = "set it in this transaction first"

    def __init__(self, name: str) -> None:
        super().__init__(f"SAVEPOINT {name} does not exist")
