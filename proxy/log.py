"""Logging: one line per event on standard error, JSON when piped, coloured on a terminal.

The shell logs through structlog and binds the context (`connection`, `keyspace`, `shard`);
the engine uses the standard library's loggers and passes the same fields in `extra`. Both use one
handler and look the same. Levels: *debug* a session started or ended, and every decision; *info* a shard came
or went; *warning* something failed and will be retried; *error* a bug of ours. Secrets are never passed to
a logger: passwords live in `config.Secret`, which prints as asterisks.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from io import StringIO
from typing import Any, Final, TextIO

from streamfrom.proxy.printable import printable


if "rich" not in sys.modules:
    # structlog loads Rich for tracebacks that we log as plain text: 5 MB and a twentieth of a second per process.
    sys.modules["rich"] = None  # type: ignore[assignment]  # import treats None as a missing module
    import structlog

    del sys.modules["rich"]
import structlog


# Each event and reason of a `SparingLog` gets at most one line in this time.
QUIET_S: Final = 10.0
# At most this many kinds are counted separately, because clients that cause the events may vary the reasons.
_KINDS_MAX: Final = 32

_members: list[str] = []


class SparingLog:
    """A log for frequent events: per event and reason one line in QUIET_S, with the `count` of all since the last line.

    log: a logger with the fields that all lines share.
    """

    def __init__(self, log: Any, now_s: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now_s = now_s
        # By event and reason: how many since the last line, and the time of that line.
        self._since: dict[tuple[str, object], tuple[int, float]] = {}

    def warning(self, event: str, **fields: Any) -> None:
        """Log *event*, unless a line with the same `reason` was written within QUIET_S."""
        self._write(self._log.warning, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """Log *event*, as `warning`."""
        self._write(self._log.info, event, fields)

    def _write(self, write: Callable[..., None], event: str, fields: dict[str, Any]) -> None:
        kind, now_s = (event, fields.get("reason")), self._now_s()
        if kind not in self._since and len(self._since) >= _KINDS_MAX:
            recent = {each: v for each, v in self._since.items() if now_s - v[1] < QUIET_S}
            self._since = recent
            if len(recent) >= _KINDS_MAX:
                kind = event, None
        count, written_s = self._since.get(kind, (0, -QUIET_S))
        if now_s - written_s < QUIET_S:
            self._since[kind] = count + 1, written_s
            return
        self._since[kind] = 0, now_s
        write(event, count=count + 1, **fields)


def name_member(member: str) -> None:
    """Add the member name of this process to each line, until the next `configure`."""
    _members[:] = [member]


def _add_member(
    _logger: object, _method: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return {**line, "member": _members[0]} if _members else line


def _escape(
    _logger: object, _method: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    return {
        key: printable(value) if isinstance(value, str) else value
        for key, value in line.items()
    }


def _traceback(text: TextIO, raised: structlog.typing.ExcInfo) -> None:
    whole = StringIO()
    structlog.dev.plain_traceback(whole, raised)
    text.write("\n".join(map(printable, whole.getvalue().split("\n"))))


def _is_news(record: logging.LogRecord) -> bool:
    """Return False for the name lookup that uvloop leaves behind when a connect times out: the timeout is already logged."""
    return record.exc_info is None or not isinstance(record.exc_info[1], socket.gaierror)


def configure(
    *,
    verbose: bool = False,
    quiet: bool = False,
    level: int | None = None,
    worker: int | None = None,
    as_json: bool | None = None,
) -> None:
    """Send log lines to standard error: from info on, all of them, or errors only.

    level: a number of the standard library instead.
    worker: the number of this process among those that share the log, added to each line.
    as_json: whether lines are JSON; None means JSON unless standard error is a terminal.
    """
    _members.clear()
    shared: list[structlog.typing.Processor] = [
        _add_member,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if as_json is None:
        as_json = not sys.stderr.isatty()
    if worker is not None:
        shared.append(lambda _logger, _method, line: {**line, "worker": worker})
    last: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [
            _escape,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
                exception_formatter=_traceback,
            ),
        ]
    )
    if level is None:
        level = logging.DEBUG if verbose else logging.ERROR if quiet else logging.INFO
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # sqlglot warns about every statement that it parses as a command, which is normal here.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    # asyncmy logs errors that it also raises.
    logging.getLogger("asyncmy").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").addFilter(_is_news)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
