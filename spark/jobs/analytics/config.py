"""The configuration of analytics: pure."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.job import WINDOW, JobConfig, check_window
from streamfrom.spark.table_schema import Field


_NEEDED: Final = ("id", "epoch", "time_next", "time_acked")
# The usual names of these columns in Vitess, used by default.
_USUAL: Final = {"tenant": "tenant_id", "created": "time_created"}


@dataclass(frozen=True)
class AnalyticsConfig(JobConfig):
    """The table, the time and the columns to measure, and the place of the results.

    low_ns, high_ns: by default the last day, or the part of it that the table covers.
    tenant, created: the columns with a message's owner and the time at which it was written; by default those with Vitess's
        names, `tenant_id` and `time_created`, if they exist. For `id`, it is the time in an id of the proxy.
    bucket_s: by default about a hundredth of the time.
    poison_sends: list messages that were sent at least this often without an acknowledgement.
    """

    OPTIONS = f"""
  out           --out DIR           a folder all executors share
{WINDOW}
  tenant        --tenant-column C   whose a message is (tenant_id, if there is one)
  created       --created-column C  when it was written (time_created, if there is one)
  bucket_s      --bucket S          seconds in a window of the charts
  poison_sends  --poison-sends N    list from N sends on (5)
"""
    LEAST = (("bucket_s", "--bucket", 1), ("poison_sends", "--poison-sends", 1))

    out: Path
    low_ns: int | None = None
    high_ns: int | None = None
    tenant: str | None = None
    created: str | None = None
    bucket_s: int | None = None
    poison_sends: int = 5

    def resolved(self, columns: "Sequence[Field]") -> "AnalyticsConfig":
        """Return a copy with defaults taken from the table.

        Raises:
            RequestError: the table lacks a named column, or one that every message table has.
        """
        names = [column.name for column in columns]
        for name in filter(None, (self.tenant, self.created, *_NEEDED)):
            if name not in names:
                raise RequestError(
                    f"{self.table} has no column {name!r}; it has {', '.join(names)}"
                )
        usual = {place: name for place, name in _USUAL.items() if name in names}
        return dataclasses.replace(
            self,
            tenant=self.tenant or usual.get("tenant"),
            created=self.created or usual.get("created"),
        )

    def needed(self, columns: "Sequence[Field]") -> list[Field]:
        """Return the table's columns that are read."""
        wanted = {*_NEEDED, "priority", self.tenant, self.created}
        return [column for column in columns if column.name in wanted]

    def span(self, now_ns: int, oldest_ack_ns: int | None) -> tuple[int, int]:
        """Return the window [low, high): by default the last day, as far as acknowledgements reach back.

        Raises:
            RequestError: the window is empty or ends in the future.
        """
        day_ns = 86_400 * 10**9
        high_ns = now_ns if self.high_ns is None else self.high_ns
        if high_ns > now_ns:
            raise RequestError(
                "--to lies in the future by a shard's clock: leave it out for now"
            )
        low_ns = self.low_ns
        if low_ns is None:
            low_ns = max(high_ns - day_ns, oldest_ack_ns or 0)
            # At least a minute, so that rates are meaningful.
            low_ns = min(low_ns, high_ns - 60 * 10**9)
        check_window(low_ns, high_ns)
        return low_ns, high_ns
