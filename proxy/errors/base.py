"""What all errors of the proxy have in common, and the one that nobody foresaw."""

from __future__ import annotations

from streamfrom.sqlparse_ext.errors import StreamfromError


class ProxyError(StreamfromError):
    """A refusal or failure of the proxy."""


class InternalError(ProxyError):
    """Something unexpected; logged with its trace under the connection id."""

    def __init__(self, connection_id: int) -> None:
        super().__init__(
            f"internal error (connection {connection_id}; the proxy's log says more)"
        )
