"""Where messages go that the function fails on, with the reason, before they are acknowledged."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, DataFrame, functions as F

from streamfrom.spark.endpoint import quoted
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.consume.sinks import written


if TYPE_CHECKING:
    from streamfrom.spark.jobs.writing import TargetColumn
    from streamfrom.spark.source.writer import WritePlan

ERROR: Final = "streamfrom_error"
"""The column with the reason, next to the message's own columns."""
# A message that is put into another queue starts over there.
_PAST: Final = frozenset({"epoch", "time_next", "time_acked"})


@dataclass(frozen=True, slots=True)
class DeadTable:
    """A message table with the columns of the messages; a row that is there already stays as it is."""

    plan: "WritePlan"
    columns: "tuple[Column, ...]"

    def put(self, number: int, frame: "DataFrame | None") -> None:
        """Insert the messages."""
        if frame is not None:
            written(frame.select(*self.columns), self.plan)


def dead_columns(
    names: "Sequence[str]", targets: "Sequence[TargetColumn]"
) -> "tuple[Column, ...]":
    """Return what of a message with the columns *names* a table with the columns *targets* is given.

    `error` has the reason and `attempts` the sends, where the table has them and the message has not.

    Raises:
        RequestError: it lacks a column of the messages.
    """
    theirs = {target.name.lower(): target for target in targets}
    own = [name for name in names if name.lower() not in _PAST]
    missing = [name for name in own if name.lower() not in theirs]
    if missing:
        raise RequestError(
            f"the table of --dead-letter-table lacks {', '.join(missing)}: give it all columns of the"
            " messages, and error TEXT for the reason"
        )
    columns = [F.col(quoted(name)) for name in own]
    taken = {name.lower() for name in own}
    if "error" in theirs and "error" not in taken:
        length = re.fullmatch(r"(?:var)?char\((\d+)\)", theirs["error"].mysql_type)
        reason = F.col(ERROR)
        columns.append(
            (F.left(reason, F.lit(int(length[1]))) if length else reason).alias("error")
        )
    if "attempts" in theirs and "attempts" not in taken:
        columns.append(F.col("epoch").alias("attempts"))
    return tuple(columns)
