"""Refused logins, ended sessions, and statements that a user may not send."""

from __future__ import annotations

from collections.abc import Sequence

from streamfrom.proxy.errors.base import ProxyError


class TooManyConnections(ProxyError):
    """The connection limit is reached; sent instead of a greeting."""

    mysql_code = 1040  # ER_CON_COUNT_ERROR
    sqlstate = "08004"
    remedy = "close some, or raise `max_connections`"
    sentence = "Too many connections"


class AddressLimitReached(TooManyConnections):
    """The limit per address is reached; the message names the key that sets it."""

    remedy = "close some, or raise the key that it names"

    def __init__(self, host: str, key: str, limit: int) -> None:
        ProxyError.__init__(self, f"Too many connections from '{host}' ({key} = {limit})")


class UserLimitReached(ProxyError):
    """A login by a user who already has the maximum number of connections."""

    mysql_code = 1226  # ER_USER_LIMIT_REACHED
    sqlstate = "42000"
    remedy = "close some, or raise the user's `max_connections`"

    def __init__(self, user: str, limit: int) -> None:
        super().__init__(
            f"User '{user}' has exceeded the 'max_connections' resource (current value: {limit})"
        )


class ConnectionMemoryExceeded(ProxyError):
    """A connection would hold more than `connection_memory` allows."""

    mysql_code = 4082  # ER_CONN_LIMIT
    remedy = (
        "close prepared statements and cursors, send less ahead, or raise `connection_memory`"
    )

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"Connection memory limit {limit_bytes} bytes exceeded: what this connection has sent"
            " ahead, its long data, its prepared statements and cursors' rows are too much together"
            " (connection_memory)"
        )


class UserMemoryExceeded(ProxyError):
    """The connections of one user would hold more than `user_memory` allows."""

    mysql_code = 1226  # ER_USER_LIMIT_REACHED
    sqlstate = "42000"
    remedy = (
        "close prepared statements, send fewer large commands at once, or raise `user_memory`"
    )

    def __init__(self, user: str, limit_bytes: int) -> None:
        super().__init__(
            f"User '{user}' has exceeded the 'user_memory' resource"
            f" (current value: {limit_bytes})"
        )


class IdleTooLong(ProxyError):
    """The client was silent for the time in *setting*; sent unprompted, as by MySQL."""

    mysql_code = 4031  # ER_CLIENT_INTERACTION_TIMEOUT
    remedy = "connect again, or raise the limit that it names"

    def __init__(self, setting: str) -> None:
        super().__init__(
            "The client was disconnected by the server because of inactivity."
            f" See {setting} for configuring this behavior."
        )


class HostNotAllowed(ProxyError):
    """A client from another machine, while the configuration names no users."""

    mysql_code = 1130  # ER_HOST_NOT_PRIVILEGED
    remedy = "configure `[[users]]`"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"Host '{host}' is not allowed to connect to this server: without [[users]] in its"
            " configuration it serves its own machine only"
        )


class AccessDenied(ProxyError):
    """The login is refused. The text is the same for an unknown user and a wrong password."""

    mysql_code = 1045  # ER_ACCESS_DENIED_ERROR
    sqlstate = "28000"
    remedy = "check name and password; an unknown user reads the same"

    def __init__(self, user: str, host: str, *, has_password: bool) -> None:
        using = "YES" if has_password else "NO"
        super().__init__(f"Access denied for user '{user}'@'{host}' (using password: {using})")
        self.user = user


class CertificateRequired(ProxyError):
    """A login over TLS without a certificate, if clients must have one."""

    mysql_code = 1045  # ER_ACCESS_DENIED_ERROR, as for an account made with REQUIRE X509
    sqlstate = "28000"
    remedy = "connect with a certificate of that authority"
    sentence = (
        "Access denied: a client certificate is required that the authority of"
        " server.tls.client_ca has signed"
    )


class AccountChanged(ProxyError):
    """The configuration was reread, and the user of a session is gone or has other rights."""

    mysql_code = 1045  # ER_ACCESS_DENIED_ERROR
    sqlstate = "28000"

    def __init__(self, user: str) -> None:
        super().__init__(
            f"Access denied: the account of user '{user}' has been changed; log in again"
        )


class InsecureTransport(ProxyError):
    """A login without TLS, if TLS is required."""

    mysql_code = 3159  # ER_SECURE_TRANSPORT_REQUIRED
    remedy = "connect with TLS, or by the unix socket"
    sentence = (
        "Connections using insecure transport are prohibited "
        "while --require_secure_transport=ON."
    )


class ServerShutdown(ProxyError):
    """The proxy is shutting down."""

    mysql_code = 1053  # ER_SERVER_SHUTDOWN
    sqlstate = "08S01"
    remedy = "connect again, to another proxy or later"
    sentence = "Server shutdown in progress"


class ShutdownUnanswered(ProxyError):
    """The proxy is shutting down, and a server has not reported the outcome of a statement."""

    sentence = (
        "the proxy is shutting down, and the server has not answered in time; whether the"
        " statement took effect is unknown: check before you repeat it"
    )


class NoClientCharset(ProxyError):
    """A login requests a character set in which no statement can be written."""

    mysql_code = 1231  # ER_WRONG_VALUE_FOR_VAR
    sqlstate = "42000"
    remedy = "log in with another character set, such as `utf8mb4`"

    def __init__(self, charset: str) -> None:
        super().__init__(
            f"Variable 'character_set_client' can't be set to the value of '{charset}'"
        )


class NoSuchThread(ProxyError):
    """KILL names a connection that does not exist."""

    mysql_code = 1094  # ER_NO_SUCH_THREAD
    remedy = "it is gone, or is the server's id: take one of `SHOW PROCESSLIST`"

    def __init__(self, connection_id: int) -> None:
        super().__init__(f"Unknown thread id: {connection_id}")


class NotOwner(ProxyError):
    """KILL names a connection of another user."""

    mysql_code = 1095  # ER_KILL_DENIED_ERROR
    remedy = "log in as that user, or as one of role `admin`"

    def __init__(self, connection_id: int) -> None:
        super().__init__(f"You are not owner of thread {connection_id}")


class MemberUnreachable(ProxyError):
    """A member of the fleet did not answer about its connections."""

    mysql_code = 1105  # ER_UNKNOWN_ERROR
    remedy = "repeat it, or send it to that proxy"

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(f"No answer about its connections from {'; '.join(faults)}")
