"""What a shard answered, or that it did not answer."""

from __future__ import annotations

from streamfrom.proxy.errors.base import ProxyError


class BackendError(ProxyError):
    """A backend's own refusal, passed on with its own code and words."""

    def __init__(self, code: int, state: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.state = state

    def wire_code(self) -> tuple[int, str]:
        """Return the backend's code and SQLSTATE."""
        return self.code, self.state


class BackendUnavailable(ProxyError):
    """No connection to a shard can be had. Nothing was sent: the statement may be repeated."""

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


# Those of them that are one user's: others are served.
USER_LIMITS = frozenset({1203, 1226})
# ER_DBACCESS_DENIED_ERROR, ER_BAD_DB_ERROR.
_OF_THE_DATABASE = frozenset({1044, 1049})
# The limits that a server itself refuses a login for, by its error code.
_SERVER_LIMITS = {
    1040: "max_connections of the server",
    1203: "max_user_connections of the server",
    1226: "a limit of the account at the server",
}


class ServerFull(BackendError):
    """A server takes no more connections of the proxy: a limit of its own, not one of the proxy."""

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
) -> BackendError:
    """Return the error for a login that *server* refused: its code and text, with the shard."""
    if refusal.code in _SERVER_LIMITS:
        return ServerFull(keyspace, shard, server, refusal)
    if refusal.code in _OF_THE_DATABASE:
        # As USE has it, which is sent on a connection that there is.
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
    """Every connection to a shard stayed taken for the whole wait."""

    def __init__(self, keyspace: str, shard: str, waited_s: float) -> None:
        super().__init__(
            f"no free connection to shard {shard!r} of keyspace {keyspace!r} within "
            f"{waited_s:g} s; nothing was executed there: try again, or raise pool_size"
        )


class SessionLost(ProxyError):
    """The backend connection with a session's own state (temporary tables, locks) is gone."""

    mysql_code = 2013

    def __init__(self, keyspace: str, shard: str) -> None:
        super().__init__(
            f"lost the connection to shard {shard!r} of keyspace {keyspace!r}, which held state"
            " of this session (variables, temporary tables or locks): connect again"
        )
