"""What analytics is asked for, and what each of a table's columns means: pure."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.analytics.message_facts import Told
from streamfrom.spark.jobs.job import WINDOW, JobConfig, check_window
from streamfrom.spark.table_schema import Field


_NEEDED: Final = ("id", "epoch", "time_next", "time_acked")
_USED: Final = (*_NEEDED, "priority")
# Names that Vitess gave such columns; they are taken where nothing else is said.
_USUAL: Final = {"tenant": "tenant_id", "created": "time_created", "due": "time_scheduled"}
_NO_COLUMNS: Final = Told()


@dataclass(frozen=True)
class AnalyticsConfig(JobConfig):
    """The table, the time and the columns to measure, and the place of the results.

    low_ns, high_ns: by default the last day, or the part of it that the table has.
    told: for a column that is None the table's with Vitess's name, if there is one (`tenant_id`, `time_created`,
        `time_scheduled`).
    bucket_s: by default about a hundredth of the time.
    poison_sends: the number of sends without an acknowledgement from which on a message is listed.
    poison_rows: how many listed messages are kept at most; the page shows the first of them.
    """

    OPTIONS = f"""
  out           --out DIR         a folder all executors share
{WINDOW}
  bucket_s      --bucket S        seconds in a window of the charts
  poison_sends  --poison-sends N  list from N sends on (5)
"""

    out: Path
    low_ns: int | None = None
    high_ns: int | None = None
    told: Told = _NO_COLUMNS
    bucket_s: int | None = None
    poison_sends: int = 5
    poison_rows: int = 1000

    def __post_init__(self) -> None:
        """Raise RequestError if a number is not above zero, or the window is empty."""
        check_window(self.low_ns, self.high_ns)
        for name, value in (
            ("--bucket", self.bucket_s),
            ("--poison-sends", self.poison_sends),
        ):
            if value is not None and value < 1:
                raise RequestError(f"{name} takes a number above 0")


def resolved(told: Told, columns: "Sequence[Field]", table: str) -> Told:
    """Return *told* with what the table itself names added.

    Raises:
        RequestError: the table lacks a column that was named, or one that every message table has.
    """
    names = [column.name for column in columns]
    for name in (*told.columns, *_NEEDED):
        if name not in names:
            raise RequestError(f"{table} has no column {name!r}; it has {', '.join(names)}")
    found = {place: name for place, name in _USUAL.items() if name in names}
    if told.created:
        found.pop("due", None)  # it belongs to time_created, and may count another unit
    return dataclasses.replace(
        told,
        tenant=told.tenant or found.get("tenant"),
        created=told.created or found.get("created"),
        due=told.due or found.get("due"),
    )


def needed(told: Told, columns: "Sequence[Field]") -> list[Field]:
    """Return those of the table's columns that are read."""
    wanted = {*_USED, *told.columns}
    return [column for column in columns if column.name in wanted]


def span(config: AnalyticsConfig, now_ns: int, oldest_ack_ns: int | None) -> tuple[int, int]:
    """Return the window [low, high): by default the last day, as far as acknowledgements reach back.

    Raises:
        RequestError: it is empty, or its end lies in the future.
    """
    day_ns = 86_400 * 10**9
    high_ns = now_ns if config.high_ns is None else config.high_ns
    if high_ns > now_ns:
        raise RequestError("--to lies in the future by a shard's clock: leave it out for now")
    low_ns = config.low_ns
    if low_ns is None:
        low_ns = max(high_ns - day_ns, oldest_ack_ns or 0)
        # At least a minute, so that a rate means something.
        low_ns = min(low_ns, high_ns - 60 * 10**9)
    if low_ns >= high_ns:
        raise RequestError("--from must lie before --to")
    return low_ns, high_ns
