"""Errors of shards, or missing replies; and the failures of a transaction over several shards."""

from __future__ import annotations

from streamfrom.proxy.errors.base import ProxyError


class BackendError(ProxyError):
    """A backend's own refusal, passed on with its code and text."""

    def __init__(self, code: int, state: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.state = state

    def wire_code(self) -> tuple[int, str]:
        """Return the backend's code and SQLSTATE."""
        return self.code, self.state


class BackendUnavailable(ProxyError):
    """No connection to a shard is available. Nothing was sent, so the statement may be repeated."""

    def __init__(self, keyspace: str, shard: str, reason: str) -> None:
        super().__init__(
            f"shard {shard!r} of keyspace {keyspace!r} is not available ({reason}); "
            "nothing was executed there: try again once the shard is back"
        )
        self.reason = reason


class NoDescriptor(BackendUnavailable):
    """This process has no file descriptor left for a connection to a shard."""

    def __init__(self, keyspace: str, shard: str) -> None:
        super().__init__(
            keyspace,
            shard,
            "the proxy has no file descriptor left: raise its limit, LimitNOFILE of systemd or ulimit -n",
        )


# Limits that apply to one user: others are still served.
USER_LIMITS = frozenset({1203, 1226})
# ER_DBACCESS_DENIED_ERROR, ER_BAD_DB_ERROR.
_OF_THE_DATABASE = frozenset({1044, 1049})
# ER_SERVER_SHUTDOWN, ER_SERVER_OFFLINE_MODE: of a server that leaves, as in a failover.
_LEAVES = frozenset({1053, 3032})
# The limits that a server itself refuses a login for, by its error code.
_SERVER_LIMITS = {
    1040: "max_connections of the server",
    1203: "max_user_connections of the server",
    1226: "a limit of the account at the server",
}


class ServerFull(BackendError):
    """A server accepts no more connections from the proxy because of the server's own limit."""

    def __init__(self, keyspace: str, shard: str, server: str, refusal: BackendError) -> None:
        super().__init__(
            refusal.code,
            refusal.state,
            f"shard {shard!r} of keyspace {keyspace!r} takes no more connections: {server} answers"
            f" '{refusal}', which is {_SERVER_LIMITS[refusal.code]}, not of the proxy; nothing was"
            " executed there: try again, raise that limit, or lower pool_size",
        )


def connect_refused(
    keyspace: str, shard: str, server: str, refusal: BackendError
) -> BackendError | BackendUnavailable:
    """Return the error for a login that *server* refused: its code and text, with the shard; BackendUnavailable of one that leaves.

    keyspace: empty if the server is a proxy that a command of the terminal queries.
    """
    if not keyspace:
        return BackendError(refusal.code, refusal.state, f"{server}: {refusal}")
    if refusal.code in _LEAVES:
        return BackendUnavailable(keyspace, shard, f"{server}: {refusal}")
    if refusal.code in _SERVER_LIMITS:
        return ServerFull(keyspace, shard, server, refusal)
    if refusal.code in _OF_THE_DATABASE:
        # Unchanged, as for USE on an existing connection.
        return refusal
    text = f"shard {shard!r} of keyspace {keyspace!r} at {server}: {refusal}"
    return BackendError(refusal.code, refusal.state, text)


class BackendLost(ProxyError):
    """The connection to a shard broke after a statement had been sent."""

    def __init__(self, keyspace: str, shard: str) -> None:
        super().__init__(
            f"lost the connection to shard {shard!r} of keyspace {keyspace!r} during the "
            "statement; whether it took effect is unknown: check before you repeat it"
        )


class AckUnknown(ProxyError):
    """The connection broke while acks were committed; whether they took effect is unknown."""

    remedy = "look before you repeat it; an ack may be repeated"


class PoolTimeout(ProxyError):
    """All connections to a shard stayed in use for the whole wait."""

    def __init__(self, keyspace: str, shard: str, waited_s: float) -> None:
        super().__init__(
            f"no free connection to shard {shard!r} of keyspace {keyspace!r} within "
            f"{waited_s:g} s; nothing was executed there: try again, or raise pool_size"
        )


class SessionLost(ProxyError):
    """The backend connection with a session's state (temporary tables, locks) is gone."""

    # SQLAlchemy and Rails reconnect on it; libmariadb accepts no 2013 from a server.
    mysql_code = 1927
    sqlstate = "08S01"

    def __init__(self, keyspace: str, shard: str) -> None:
        super().__init__(
            f"lost the connection to shard {shard!r} of keyspace {keyspace!r}, which held state"
            " of this session (variables, temporary tables or locks): connect again"
        )


class TransactionSpansShards(ProxyError):
    """A second shard in one transaction, which the configuration forbids."""

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
    """A shard has no table for the outcome of a transaction over several shards."""

    def __init__(self, table: str, shard: str, reason: str) -> None:
        super().__init__(
            f"a transaction over several shards needs table '{table}' on shard '{shard}', as"
            f' transaction_mode is "twopc": {reason}; `streamfrom check` says what is missing'
        )


class CommitRefused(BackendError):
    """One shard refused to commit in two phases, so all have rolled back; with that shard's code."""

    def __init__(self, shard: str, error: BackendError) -> None:
        super().__init__(
            error.code,
            error.state,
            f"shard '{shard}' refused to commit, and the transaction was rolled back on every"
            f" shard: {error}",
        )


class CommitUnknown(ProxyError):
    """The shard that decides was lost during its commit and has not come back."""

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
    """RELEASE or ROLLBACK TO a savepoint that the transaction has not set."""

    mysql_code = 1305  # ER_SP_DOES_NOT_EXIST
    sqlstate = "42000"
    remedy = "set it in this transaction first"

    def __init__(self, name: str) -> None:
        super().__init__(f"SAVEPOINT {name} does not exist")
