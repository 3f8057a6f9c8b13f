"""Facts about messages, derived from their rows: pure DataFrame → DataFrame.

A row keeps little of a message's life: `epoch` counts how often it was sent, `time_acked` is when it was
acknowledged, and a `time_next` in the future is when it is due or redelivered; an acknowledgement erases
`time_next`. When it was written is known only if a column records it. Unknown values are NULL here, and so is a
difference that would overflow.

    acked    shard  tenant  acked_ns  created_ns  sends  retries  to_ack_ns  is_skewed
    waiting  shard  id  tenant  priority  sends  next_ns  created_ns  now_ns  state  overdue_ns  age_ns
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, functions as F

from streamfrom.spark.endpoint import quoted
from streamfrom.spark.jobs.reading import SHARD


# Numbers below these limits count seconds, milliseconds and microseconds since 1970, larger ones nanoseconds: all are times since 1973.
_UNITS_NS: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))

ID: Final = "id"
# The proxy's ids: steps of 10 ms since 2026, above 16 bits that keep ids apart.
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
"""The states of unacknowledged messages, by urgency, and their meanings."""
# From this value on, `time_next` is no time but marks a blocked or parked message.
BLOCKED_NS: Final = 8 * 10**18
PARKED_NS: Final = 9 * 10**18


def acked_facts(rows: "DataFrame", tenant: str | None, created: str | None) -> "DataFrame":
    """Return one row for each acknowledged message of *rows*.

    tenant: the column with the message's owner, or None.
    created: the column with the time at which the message was written, or None; for `id`, the time in an id of the proxy.
    is_skewed: the message was acknowledged before it was written, so two clocks disagree.
    """
    times = rows.select(
        F.col(SHARD).alias("shard"),
        _text(rows, tenant).alias("tenant"),
        F.col("time_acked").cast("bigint").alias("acked_ns"),
        _time(rows, created).alias("created_ns"),
        F.coalesce(F.col("epoch"), F.lit(0)).cast("bigint").alias("sends"),
    )
    early = F.col("acked_ns") < F.col("created_ns")
    return times.select(
        *times.columns,
        F.greatest(F.col("sends") - 1, F.lit(0)).alias("retries"),
        F.try_subtract("acked_ns", "created_ns").alias("to_ack_ns"),
        F.coalesce(early, F.lit(False)).alias("is_skewed"),  # noqa: FBT003  a literal column
    )


def waiting_facts(
    rows: "DataFrame", tenant: str | None, created: str | None, clocks_ns: "Mapping[str, int]"
) -> "DataFrame":
    """Return one row for each message of *rows*, none of them acknowledged; *tenant* and *created* as for `acked_facts`.

    clocks_ns: the time of each shard's server after its messages were read.
    state: one of `STATES`.
    overdue_ns: the time since the message became due; NULL if neither `time_next` nor *created* is known.
    age_ns: the time since the message was written; NULL if it is not known.
    """
    clocks = F.create_map(
        *(F.lit(part) for clock in sorted(clocks_ns.items()) for part in clock)
    )
    times = rows.select(
        F.col(SHARD).alias("shard"),
        _text(rows, "id").alias("id"),
        _text(rows, tenant).alias("tenant"),
        _priority(rows).alias("priority"),
        F.coalesce(F.col("epoch"), F.lit(0)).cast("bigint").alias("sends"),
        F.col("time_next").cast("bigint").alias("next_ns"),
        _time(rows, created).alias("created_ns"),
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
    # A new row has 0 here, which is no time.
    since = F.when(F.col("next_ns") > 0, F.col("next_ns")).otherwise(F.col("created_ns"))
    return times.select(
        *times.columns,
        state.alias("state"),
        F.when(is_due, F.try_subtract(F.col("now_ns"), since)).alias("overdue_ns"),
        F.try_subtract("now_ns", "created_ns").alias("age_ns"),
    )


def _priority(rows: "DataFrame") -> "Column":
    """Return the priority, which Vitess's first layout of message tables did not have."""
    known = F.col("priority") if "priority" in rows.columns else F.lit(None)
    return F.coalesce(known.cast("bigint"), F.lit(0))


def _text(rows: "DataFrame", name: str | None) -> "Column":
    if name is None:
        return F.lit(None).cast("string")
    column = F.col(quoted(name))
    return F.hex(column) if _type(rows, name) == "binary" else column.cast("string")


def _time(rows: "DataFrame", name: str | None) -> "Column":
    """Return the nanoseconds since the epoch in column *name*; NULL and zero count as unknown."""
    if name is None:
        return F.lit(None).cast("bigint")
    column = F.col(quoted(name))
    if _type(rows, name) == "string":
        moment = F.try_to_timestamp(F.concat(column, F.lit("+00:00")))
        return F.unix_micros(moment) * 1000
    if name == ID and _type(rows, name) == "bigint":
        # The proxy's ids have 53 bits. Others are an application's, and contain no time.
        steps = F.when(column.between(_FIRST_ID, _LAST_ID), F.shiftright(column, ID_COUNT_BITS))
        return steps * ID_STEP_NS + ID_EPOCH_NS
    found = F.when(column <= 0, None)
    for below, unit_ns in _UNITS_NS:
        found = found.when(column < below, F.try_multiply(column, F.lit(unit_ns)))
    return found.otherwise(column).try_cast("bigint")


def _type(rows: "DataFrame", name: str) -> str:
    return next(kind for column, kind in rows.dtypes if column == name)
