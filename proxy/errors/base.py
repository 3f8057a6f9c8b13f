"""The common base of the proxy's errors, and the error for unexpected failures."""

from __future__ import annotations

from typing import ClassVar

from streamfrom.sqlparse_ext.errors import StreamfromError


class ProxyError(StreamfromError):
    """A refusal or failure of the proxy."""

    # The text of a class whose text never varies; it is raised without arguments.
    sentence: ClassVar[str] = ""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence or self.sentence)


class InternalError(ProxyError):
    """An unexpected error; logged with its traceback under the connection id."""

    remedy = "report it with that log line"

    def __init__(self, connection_id: int) -> None:
        super().__init__(
            f"internal error (connection {connection_id}; the proxy's log says more)"
        )
