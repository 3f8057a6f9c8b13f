"""Logging: one line an event, JSON when piped, coloured on a terminal.

Every module takes its logger from `structlog.get_logger()` and binds who is concerned
(`connection`, `shard`, `table`). Levels mean: *debug* every packet decision, *info* a session
or a table came or went, *warning* something failed and will be tried again, *error* a fault of
ours. No secret is ever handed to a logger: passwords live in `config.Secret`, which prints as
asterisks.
"""

from __future__ import annotations

import logging
import sys

import structlog


def configure(*, verbose: bool = False) -> None:
    """Send log lines to standard error: readable on a terminal, JSON lines when piped."""
    on_terminal = sys.stderr.isatty()
    processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if on_terminal:
        processors.append(structlog.dev.ConsoleRenderer())
    else:
        processors += [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if verbose else logging.INFO
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
