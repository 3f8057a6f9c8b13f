"""The table `[log]`: what is logged, and how its lines look."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from streamfrom.proxy.config.toml_values import TomlTable


class LogLevel(StrEnum):
    """The least that is logged, by the names of the standard library's levels."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a line looks."""

    AUTO = "auto"  # TEXT on a terminal, JSON when piped
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What the log of a proxy is like."""

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.AUTO


def log_from(table: TomlTable) -> LogSettings:
    """Return what is configured in *table*. Raises ConfigError."""
    settings = LogSettings(
        table.choice("level", LogLevel.INFO), table.choice("format", LogFormat.AUTO)
    )
    table.close()
    return settings
