"""What a row of a message table says about its message: pure DataFrame → DataFrame.

A row keeps little of a message's life: `epoch` counts how often it was sent, `time_acked` is when it was
acknowledged, and `time_next`, once it is in the future, when it is due or comes again; an acknowledgement erases
`time_next`. When it was written, due first or delivered is known only where the application has columns
for that. What is not known is NULL here, and so is a difference that would overflow.

    acked    shard  tenant  acked_ns  created_ns  sends  retries  to_ack_ns  lag_ns  is_skewed
    waiting  shard  id  tenant  priority  sends  next_ns  created_ns  now_ns  state  overdue_ns  age_ns  is_skewed
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from pyspark.sql import Column, DataFrame, functions as F

from streamfrom.spark.endpoint import quoted
from streamfrom.spark.jobs.reading import SHARD


UNITS_NS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
"""What a number in a column of times may count, and how many nanoseconds that is."""

ID: Final = "id"
# An id that the proxy gave is steps of 10 ms since 2026 above 16 bits that keep ids apart.
ID_EPOCH_NS: Final = 1_767_225_600 * 10**9
ID_STEP_NS: Final = 10_000_000
ID_COUNT_BITS: Final = 16
_FIRST_ID, _LAST_ID = 1 << ID_COUNT_BITS, (1 << 53) - 1

READY: Final = "ready"
READY_AGAIN: Final = "ready again"
PARKED: Final = "parked"
IN_FLIGHT: Final = "in_flight"
SCHEDULED: Final = "scheduled"
BLOCKED: Final = "blocked"
STATES: Final = {
    READY: "never delivered, and should be",
    READY_AGAIN: "delivered, and waited long enough",
    PARKED: "not delivered until you requeue them",
    IN_FLIGHT: "with a consumer, or waiting for their next attempt",
    SCHEDULED: "for the future, never delivered",
    BLOCKED: "waiting for a group of messages",
}
"""The states of messages that are not acknowledged, in the order of their urgency, and what they mean."""
# From where on `time_next` is no time, but says that a message is blocked or parked.
BLOCKED_NS: Final = 8 * 10**18
PARKED_NS: Final = 9 * 10**18


@dataclass(frozen=True, slots=True)
class Told:
    """The application's columns that say more about a message; None for a column that it lacks.

    tenant: the column with the message's owner.
    created: the column with the time at which the message was written; of `id` the time that an id of the proxy contains.
    due: the column with the time of the first delivery; without one *created* counts.
    delivered: the column with the time at which the consumer got the message.
    unit: the unit of numbers in the three columns of times; text in them is a DATETIME in UTC.
    """

    OPTIONS: ClassVar = f"""
  tenant     --tenant-column C          whose a message is (tenant_id, if there is one)
  created    --created-column C         when it was written (time_created, if there is one)
  due        --due-column C             when it was to be delivered first (time_scheduled, if there is one)
  delivered  --delivered-column C       when its consumer got it
  unit       --time-unit {{{",".join(UNITS_NS)}}}  what numbers in these columns of times count since 1970 (ns)
"""

    tenant: str | None = None
    created: str | None = None
    due: str | None = None
    delivered: str | None = None
    unit: str = "ns"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns there are, each once."""
        named = (self.tenant, self.created, self.due, self.delivered)
        return tuple(dict.fromkeys(name for name in named if name))


def acked_facts(rows: "DataFrame", told: Told) -> "DataFrame":
    """Return one row for each acknowledged message of *rows*.

    lag_ns: delivered - due where there is a column for the delivery. Else, for a message that was
        sent once, acknowledged - due: its delivery took no longer than that.
    is_skewed: the message was acknowledged or delivered before it was written, so two clocks disagree.
    """
    created, delivered = _time(rows, told.created, told), _time(rows, told.delivered, told)
    due = F.greatest(_time(rows, told.due, told), created)
    times = rows.select(
        F.col(SHARD).alias("shard"),
        _text(rows, told.tenant).alias("tenant"),
        F.col("time_acked").cast("bigint").alias("acked_ns"),
        created.alias("created_ns"),
        due.alias("due_ns"),
        delivered.alias("delivered_ns"),
        F.coalesce(F.col("epoch"), F.lit(0)).cast("bigint").alias("sends"),
    )
    to_ack, acked_lag = _less("acked_ns", "created_ns"), _less("acked_ns", "due_ns")
    lag = (
        _less("delivered_ns", "due_ns")
        if told.delivered
        else F.when(F.col("sends") == 1, acked_lag)
    )
    early = (F.col("acked_ns") < F.col("created_ns")) | (
        F.col("delivered_ns") < F.col("created_ns")
    )
    return times.select(
        "shard",
        "tenant",
        "acked_ns",
        "created_ns",
        "sends",
        F.greatest(F.col("sends") - 1, F.lit(0)).alias("retries"),
        to_ack.alias("to_ack_ns"),
        lag.alias("lag_ns"),
        F.coalesce(early, F.lit(False)).alias("is_skewed"),  # noqa: FBT003  a literal column
    )


def waiting_facts(rows: "DataFrame", told: Told, clocks_ns: "Mapping[str, int]") -> "DataFrame":
    """Return one row for each message of *rows*, none of them acknowledged.

    clocks_ns: the time of each shard's server when its messages had been read.
    state: one of `STATES`.
    overdue_ns: the time since the message is due; NULL where neither `time_next` nor a column says.
    age_ns: the time since the message was written; NULL where no column says.
    is_skewed: the message was written in the future, so two clocks disagree.
    """
    clocks = F.create_map(
        *(F.lit(part) for clock in sorted(clocks_ns.items()) for part in clock)
    )
    times = rows.select(
        F.col(SHARD).alias("shard"),
        _text(rows, "id").alias("id"),
        _text(rows, told.tenant).alias("tenant"),
        _priority(rows).alias("priority"),
        F.coalesce(F.col("epoch"), F.lit(0)).cast("bigint").alias("sends"),
        F.col("time_next").cast("bigint").alias("next_ns"),
        _time(rows, told.created, told).alias("created_ns"),
        clocks[F.col(SHARD)].cast("bigint").alias("now_ns"),
    )
    is_due = F.col("next_ns").isNull() | (F.col("next_ns") <= F.col("now_ns"))
    was_sent = F.col("sends") > 0
    state = (
        F.when(F.col("next_ns") >= PARKED_NS, PARKED)
        .when(F.col("next_ns") >= BLOCKED_NS, BLOCKED)
        .when(is_due & was_sent, READY_AGAIN)
        .when(is_due, READY)
        .when(was_sent, IN_FLIGHT)
        .otherwise(SCHEDULED)
    )
    # A new row has 0 there, which is no time at all.
    since = F.when(F.col("next_ns") > 0, F.col("next_ns")).otherwise(F.col("created_ns"))
    overdue = F.when(is_due, F.try_subtract(F.col("now_ns"), since))
    return times.select(
        *times.columns,
        state.alias("state"),
        overdue.alias("overdue_ns"),
        _less("now_ns", "created_ns").alias("age_ns"),
        F.coalesce(F.col("created_ns") > F.col("now_ns"), F.lit(False)).alias("is_skewed"),  # noqa: FBT003  a literal column
    )


def _priority(rows: "DataFrame") -> "Column":
    """Return the priority, which Vitess's first layout of message tables did not have."""
    known = F.col("priority") if "priority" in rows.columns else F.lit(None)
    return F.coalesce(known.cast("bigint"), F.lit(0))


def _less(minuend: str, subtrahend: str) -> "Column":
    return F.try_subtract(F.col(minuend), F.col(subtrahend))


def _text(rows: "DataFrame", name: str | None) -> "Column":
    if name is None:
        return F.lit(None).cast("string")
    column = F.col(quoted(name))
    return F.hex(column) if _type(rows, name) == "binary" else column.cast("string")


def _time(rows: "DataFrame", name: str | None, told: Told) -> "Column":
    """Return the nanoseconds since the epoch in column *name*; NULL and zero are no times."""
    if name is None:
        return F.lit(None).cast("bigint")
    column = F.col(quoted(name))
    if _type(rows, name) == "string":
        moment = F.try_to_timestamp(F.concat(column, F.lit("+00:00")))
        return F.unix_micros(moment) * 1000
    if name == ID and _type(rows, name) == "bigint":
        # As the proxy makes them, with 53 bits: others are those of an application, and no times.
        steps = F.when(column.between(_FIRST_ID, _LAST_ID), F.shiftright(column, ID_COUNT_BITS))
        return steps * ID_STEP_NS + ID_EPOCH_NS
    counted = F.try_multiply(column, F.lit(UNITS_NS[told.unit])).try_cast("bigint")
    return F.when(counted > 0, counted)


def _type(rows: "DataFrame", name: str) -> str:
    return next(kind for column, kind in rows.dtypes if column == name)
