"""Move a message table to a keyspace with other shards: plan, copy, verify.

Acknowledged rows no longer change, so they are copied while both sides are in use; the rest once writes have
stopped. Rows pass through the target's proxy, which routes them. A copy may be killed at any moment and
run again: a slice of time whose checksum already matches is not copied, and existing rows
are left unchanged. `verify` compares, for each shard of the target, the expected rows of the source with
the actual ones. Nothing is ever changed or deleted on the source.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
from pyspark.sql import functions as F

from streamfrom.spark.endpoint import (
    Endpoint,
    parse_endpoint,
    password,
    quoted,
    shards_of,
    text_of,
)
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.functions import shard_of
from streamfrom.spark.jobs.checksum import Checksum, checksums, total
from streamfrom.spark.jobs.job import JobConfig, begun, broken_off
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.jobs.reading import (
    SHARD,
    acked_between,
    acked_parts,
    check_closed,
    read_rows,
)
from streamfrom.spark.jobs.writing import insert_frame
from streamfrom.spark.keyspace_ids import KeyspaceIdError, Shards, keyspace_ids
from streamfrom.spark.table_schema import Field, fields_of, kept_type


if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession

STEPS: Final = ("plan", "copy", "verify")
SLICE_ROWS: Final = 50_000
SLICES_MAX: Final = 500
_TARGET: Final = ("--to-proxy", "--to-password-env")
_WAITING: Final = "time_acked IS NULL"
_OWNER: Final = "streamfrom_owner"
_SLICE: Final = "streamfrom_slice"


@dataclass(frozen=True)
class ReshardConfig(JobConfig):
    """The source and target keyspaces, and the part of the table to copy.

    until_ns: copy rows acknowledged before this time; None for all rows, once writes have stopped.
    """

    OPTIONS = f"""
  step             step {{{",".join(STEPS)}}}  plan only counts and checks
  target           --to-proxy URL           the keyspace with the new shards, mysql://user@host:port/keyspace
  to_password_env  --to-password-env V      the variable that holds the password there
  until_ns         --until T                what was acknowledged before, while both sides work; ISO date or time, UTC
| until_ns         --stopped                all rows: no client writes to the source any more
"""

    step: str
    target: Endpoint
    until_ns: int | None
    to_password_env: str = ""

    def __post_init__(self) -> None:
        """Raise RequestError if the target is the source."""
        if _place(self.target) == _place(self.endpoint):
            raise RequestError(
                "--to-proxy is the keyspace of --proxy: name one with the new shards"
            )

    @classmethod
    def asked(cls, options: "argparse.Namespace") -> Self:
        """Return the configuration from the command line.

        Raises:
            RequestError: the target's address is malformed or the same as the source's.
        """
        secret = password(_TARGET[1], options.to_password_env)
        options.target = parse_endpoint(options.target, secret, _TARGET)
        return super().asked(options)


CONFIG: Final = ReshardConfig


def _place(endpoint: Endpoint) -> tuple[str, int, str]:
    return endpoint.host, endpoint.port, endpoint.keyspace


@dataclass(frozen=True, slots=True)
class TableMove:
    """The request and the facts from the servers: shards on both sides, the columns, those that the target does not compute, and how rows are routed.

    acked: how many rows of the source are acknowledged.
    low_ns, high_ns: a window that covers all acknowledged rows of both sides that should be equal.
    """

    spark: "SparkSession"
    config: ReshardConfig
    progress: Progress
    source_shards: tuple[str, ...]
    target_shards: tuple[str, ...]
    columns: tuple[Field, ...]
    written: tuple[Field, ...]
    vindex_column: str
    vindex: str
    acked: int
    low_ns: int
    high_ns: int

    def source(self) -> "DataFrame":
        """Return the rows to copy."""
        return self._rows(self.config.endpoint, self.source_shards)

    def target(self) -> "DataFrame":
        """Return the rows of the target that must be equal."""
        return self._rows(self.config.target, self.target_shards)

    def _rows(self, endpoint: Endpoint, shards: "Sequence[str]") -> "DataFrame":
        parts = acked_parts(shards, self.low_ns, self.high_ns)
        if self.config.until_ns is None:
            parts += [(shard, _WAITING) for shard in shards]
        return read_rows(self.spark, endpoint, self.config.table, self.columns, parts)

    def expected(self) -> dict[str, Checksum]:
        """Return the checksum that each shard of the target should have, computed from the source's rows."""
        owner = shard_of(F.col(quoted(self.vindex_column)), self.target_shards, self.vindex)
        found = checksums(self.source().withColumn(_OWNER, owner), _OWNER, SHARD)
        return {shard: found.get(shard, Checksum()) for shard in self.target_shards}


def run(
    spark: "SparkSession", config: ReshardConfig, progress: Progress | None = None
) -> Report:
    """Do one step.

    Returns:
        After plan: `rows`, and `to SHARD` for each target. After copy: `rows` = `copied` + `there before`.
        After verify: `rows`, and `on SHARD` for each target.

    Raises:
        RequestError: the tables, clocks or the vindex do not allow it; nothing was begun.
        JobError: it broke off, or the target differs from the source.
    """
    progress = begun(spark, progress)
    move = _checked(spark, config, progress)
    with broken_off():
        counts = {"plan": _plan, "copy": _copy, "verify": _verify}[config.step](move)
    progress.leave()
    return Report(f"reshard {config.step}", config.name, counts, progress.steps_s)


# --- preconditions -------------------------------------------------------------------------------


def _checked(spark: "SparkSession", config: ReshardConfig, progress: Progress) -> TableMove:
    source, target, table = config.endpoint, config.target, config.table
    source_shards = shards_of(source)
    try:
        target_shards = shards_of(target)
    except JobError as error:
        raise RequestError(str(error)) from error
    columns = fields_of(source, source_shards, table, kept_type)
    there = fields_of(target, target_shards, table, kept_type)
    if columns != there:
        raise RequestError(f"{table} has other columns at --to-proxy: make it alike there")
    if config.until_ns is not None:
        check_closed(source, source_shards, config.until_ns, "--until")
    column, vindex = _vindex_of(target, table) if len(target_shards) > 1 else ("id", "hash")
    try:
        Shards.named(target_shards)
        keyspace_ids(pa.array([], pa.int64()), vindex)
    except KeyspaceIdError as error:
        raise RequestError(f"{table} at --to-proxy cannot be verified: {error}") from error
    acked, low_ns, high_ns = _extent(config, source_shards, target_shards)
    sides = tuple(source_shards), tuple(target_shards)
    fields = columns, tuple(one for one in there if not one.is_generated)
    routed = column, vindex
    return TableMove(spark, config, progress, *sides, *fields, *routed, acked, low_ns, high_ns)


def _extent(
    config: ReshardConfig, source_shards: "Sequence[str]", target_shards: "Sequence[str]"
) -> tuple[int, int, int]:
    """Return how many rows of the source are acknowledged, and a window [low, high) that covers those of both sides."""
    extent = f"SELECT COUNT(time_acked), MIN(time_acked), MAX(time_acked) FROM {quoted(config.table)}"  # noqa: S608  quoted
    ours = [config.endpoint.ask(extent, shard=shard)[0] for shard in source_shards]
    theirs = [config.target.ask(extent, shard=shard)[0] for shard in target_shards]
    ends_ns = [int(end) for _, *ends in (*ours, *theirs) for end in ends if end is not None]
    high_ns = config.until_ns or max(ends_ns, default=0) + 1
    low_ns = min(ends_ns, default=0)
    return sum(int(row[0]) for row in ours), min(low_ns, high_ns - 1), high_ns


def _vindex_of(endpoint: Endpoint, table: str) -> tuple[str, str]:
    """Return the column and the type of the primary vindex."""
    told = endpoint.ask(f"SHOW VSCHEMA VINDEXES ON {quoted(table)}")
    if not told:
        raise RequestError(f"{table} at --to-proxy has no vindex: add it to the vschema there")
    column, _, kind, *_ = map(text_of, told[0])
    return column, kind


# --- the rows --------------------------------------------------------------------------------


def _plan(move: TableMove) -> dict[str, int]:
    move.progress.enter("plan")
    sums = move.expected()
    return {"rows": total(sums).rows} | {
        f"to {shard}": found.rows for shard, found in sums.items()
    }


def _copy(move: TableMove) -> dict[str, int]:
    config, progress = move.config, move.progress
    progress.enter("compare")
    slices = max(1, min(SLICES_MAX, -(-move.acked // SLICE_ROWS)))
    width_ns = -(-(move.high_ns - move.low_ns) // slices)
    # NULL for waiting rows.
    place = F.expr(f"(time_acked - {move.low_ns:d}) div {width_ns:d}")
    ours, theirs = (
        checksums(rows.withColumn(_SLICE, place), _SLICE, SHARD)
        for rows in (move.source(), move.target())
    )
    missing = [key for key, found in ours.items() if theirs.get(key) != found]
    rows = total(ours).rows
    progress.enter("copy")
    copied = 0
    if missing:
        parts = [
            (shard, _condition(move, key, width_ns))
            for key in missing
            for shard in move.source_shards
        ]
        source = read_rows(move.spark, config.endpoint, config.table, move.columns, parts)
        names = [quoted(column.name) for column in move.written]
        wanted = sum(ours[key].rows for key in missing)
        sent, copied = insert_frame(source.select(*names), config.target, config.table, wanted)
        rows += sent - wanted  # rows that appeared or disappeared since the count
    return {"rows": rows, "copied": copied, "there before": rows - copied}


def _condition(move: TableMove, place: int | None, width_ns: int) -> str:
    if place is None:
        return _WAITING
    low_ns = move.low_ns + place * width_ns
    return acked_between(low_ns, min(low_ns + width_ns, move.high_ns))


def _verify(move: TableMove) -> dict[str, int]:
    move.progress.enter("source")
    expected = move.expected()
    move.progress.enter("target")
    there = checksums(move.target(), SHARD)
    found = {shard: there.get(shard, Checksum()) for shard in move.target_shards}
    wrong = [
        f"{shard} has {found[shard].rows} rows of {expected[shard].rows}"
        + (", others" if found[shard].rows == expected[shard].rows else "")
        for shard in move.target_shards
        if found[shard] != expected[shard]
    ]
    if wrong:
        raise JobError(
            f"the target differs: {'; '.join(wrong)}. Copy again; if it stays so, a client wrote there or"
            " to the source meanwhile, or purged: delete what differs on the target, never switch over"
        )
    return {"rows": total(expected).rows} | {
        f"on {shard}": one.rows for shard, one in found.items()
    }
