"""Move a message table to a keyspace with other shards: plan, copy, verify.

What is acknowledged no longer changes, so it is copied while both sides work; the rest once writes have
stopped. Rows pass through the target's proxy, which routes them. A copy may be killed at any moment and
is run again: a slice of time whose checksum the target has already is not read, and a row that is there
stays as it is. `verify` compares, for each shard of the target, what the source has for it with what is
there. Nothing is ever changed or deleted on the source.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from streamfrom.spark.endpoint import (
    Endpoint,
    declared,
    parse_endpoint,
    password,
    quoted,
    shards_of,
    text_of,
)
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.checksum import Checksum, is_exact, of_batch, total
from streamfrom.spark.jobs.job import JobConfig, begun, broken_off
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.jobs.reading import (
    CHECKSUMS,
    acked_between,
    as_batch,
    check_closed,
    checksum_of_frame,
    checksums,
    checksums_of_servers,
    mapped,
    read_rows,
    slices,
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


@dataclass(frozen=True)
class ReshardConfig(JobConfig):
    """The keyspace to copy from, the one to copy to, and the part of the table.

    until_ns: the time before which the copied rows were acknowledged; None for all rows, once writes have stopped.
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
        """Return what the command line asks for.

        Raises:
            RequestError: the target's address is none, or that of the source.
        """
        secret = password(_TARGET[1], options.to_password_env)
        options.target = parse_endpoint(options.target, secret, _TARGET)
        return super().asked(options)


CONFIG: Final = ReshardConfig


def _place(endpoint: Endpoint) -> tuple[str, int, str]:
    return endpoint.host, endpoint.port, endpoint.keyspace


@dataclass(frozen=True, slots=True)
class TableMove:
    """What was asked for, and what the servers said: shards on both sides, the columns, and what routes a row."""

    spark: "SparkSession"
    config: ReshardConfig
    progress: Progress
    source_shards: tuple[str, ...]
    target_shards: tuple[str, ...]
    columns: tuple[Field, ...]
    vindex_column: str
    vindex: str

    @property
    def condition(self) -> str:
        """The rows that move."""
        until_ns = self.config.until_ns
        return "1 = 1" if until_ns is None else f"time_acked < {until_ns:d}"

    def source(self, conditions: "Sequence[str]") -> "DataFrame":
        """Return the rows of the source that fulfil one of *conditions*."""
        parts = [(shard, condition) for condition in conditions for shard in self.source_shards]
        endpoint, table = self.config.endpoint, self.config.table
        return read_rows(self.spark, endpoint, table, self.columns, parts)

    def sums_at(
        self, endpoint: Endpoint, shards: "Sequence[str]", conditions: "Sequence[str]"
    ) -> dict[tuple[str, str], Checksum]:
        """Return what the servers compute for each (shard, condition)."""
        parts = [(shard, condition) for shard in shards for condition in conditions]
        return checksums_of_servers(
            self.spark, endpoint, self.config.table, self.columns, parts
        )

    def expected(self) -> dict[str, Checksum]:
        """Return what each shard of the target ought to have, computed from the source's rows."""
        columns, column, vindex = self.columns, self.vindex_column, self.vindex
        owners = Shards.named(self.target_shards)

        def sums(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            for batch in batches:
                names = owners.owning(keyspace_ids(batch.column(column), vindex))
                for shard in owners.names:
                    rows = batch.filter(pa.compute.equal(names, shard))
                    yield as_batch(of_batch(rows, columns), shard)

        found = checksums(mapped(self.source([self.condition]), sums, CHECKSUMS))
        return {shard: found[shard, ""] for shard in self.target_shards}


def run(
    spark: "SparkSession", config: ReshardConfig, progress: Progress | None = None
) -> Report:
    """Do one step.

    Returns:
        After plan: `rows`, and `to SHARD` for each target. After copy: `rows` = `copied` + `there before`.
        After verify: `rows`, and `on SHARD` for each target.

    Raises:
        RequestError: tables, clocks or the vindex do not allow it; nothing was begun.
        JobError: it broke off, or the target does not have what the source has.
    """
    progress = begun(spark, progress)
    move = _checked(spark, config, progress)
    with broken_off():
        counts = {"plan": _plan, "copy": _copy, "verify": _verify}[config.step](move)
    progress.leave()
    return Report(f"reshard {config.step}", config.name, counts, progress.steps_s)


# --- what must be true ---------------------------------------------------------------------------


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
    sides = tuple(source_shards), tuple(target_shards)
    return TableMove(spark, config, progress, *sides, columns, column, vindex)


def _vindex_of(endpoint: Endpoint, table: str) -> tuple[str, str]:
    """Return the column of the primary vindex and the vindex's type."""
    told = endpoint.ask(f"SHOW VSCHEMA VINDEXES ON {quoted(table)}")
    if not told:
        raise RequestError(f"{table} at --to-proxy has no vindex: add it to the vschema there")
    column, _, kind, *_ = map(text_of, told[0])
    if "," in column:
        raise RequestError(f"{table} at --to-proxy has a vindex of several columns: {column}")
    return column, kind


# --- the rows --------------------------------------------------------------------------------


def _slices(move: TableMove) -> list[str]:
    """Cut the rows that move into conditions: slices of time, and what waits."""
    config = move.config
    extent = f"SELECT COUNT(*), MIN(time_acked), MAX(time_acked) FROM {quoted(config.table)} WHERE time_acked IS NOT NULL"  # noqa: S608  quoted
    told = [config.endpoint.ask(extent, shard=shard)[0] for shard in move.source_shards]
    found = [tuple(map(int, row)) for row in told if row[1] is not None]
    result = [] if config.until_ns is not None else [_WAITING]
    if found:
        counts, lows_ns, highs_ns = zip(*found, strict=True)
        low_ns, high_ns = min(lows_ns), max(highs_ns) + 1
        high_ns = min(high_ns, config.until_ns or high_ns)
        count = max(1, min(SLICES_MAX, -(-sum(counts) // SLICE_ROWS)))
        cuts = slices(low_ns, high_ns, count) if low_ns < high_ns else []
        result += [acked_between(low, high) for low, high in cuts]
    return result


def _plan(move: TableMove) -> dict[str, int]:
    move.progress.enter("plan")
    sums = move.expected()
    return {"rows": total(sums.values()).rows} | {
        f"to {shard}": found.rows for shard, found in sums.items()
    }


def _copy(move: TableMove) -> dict[str, int]:
    config, progress = move.config, move.progress
    progress.enter("compare")
    conditions = _slices(move)
    ours, theirs = (
        {
            c: total(found for (_, which), found in sums.items() if which == c)
            for c in conditions
        }
        for sums in (
            move.sums_at(config.endpoint, move.source_shards, conditions),
            move.sums_at(config.target, move.target_shards, conditions),
        )
    )
    missing = [c for c in conditions if ours[c].rows and ours[c] != theirs[c]]
    rows = total(ours.values()).rows
    progress.enter("copy")
    copied = 0
    if missing:
        kept = declared(config.target, move.target_shards[0], config.table)
        names = [quoted(column.name) for column in kept if not column.is_generated]
        wanted = sum(ours[condition].rows for condition in missing)
        sent, copied = insert_frame(
            move.source(missing).select(*names), config.target, config.table, wanted, progress
        )
        rows += sent - wanted  # rows that came or went since they were counted
    return {"rows": rows, "copied": copied, "there before": rows - copied}


def _verify(move: TableMove) -> dict[str, int]:
    config, condition = move.config, move.condition
    move.progress.enter("source")
    expected = move.expected()
    move.progress.enter("target")
    exact = is_exact(move.columns)
    told = move.sums_at(config.target, move.target_shards, [condition]) if exact else {}
    found = {}
    for shard in move.target_shards:
        one = told.get((shard, condition))
        if one is None or one != expected[shard]:
            # A server may write a rare type in another way: what it sends decides.
            part = [(shard, condition)]
            rows = read_rows(move.spark, config.target, config.table, move.columns, part)
            one = checksum_of_frame(rows, move.columns)
        found[shard] = one
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
    return {"rows": total(expected.values()).rows} | {
        f"on {shard}": one.rows for shard, one in found.items()
    }
