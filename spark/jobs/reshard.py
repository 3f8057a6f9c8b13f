"""Move a message table to a keyspace with other shards: plan, copy, verify.

What is acknowledged no longer changes, so it is copied while both sides work; the rest once writes have
stopped. Rows pass through the target's proxy, which routes them. A copy may be killed at any moment and
is run again: a slice of time whose checksum the target has already is not read, and a row that is there
stays as it is. `verify` compares, for each shard of the target, what the source has for it with what is
there. Nothing is ever changed or deleted on the source.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Self

import pyarrow as pa

from streamfrom.spark.endpoint import (
    Endpoint,
    parse_endpoint,
    quoted,
    shards_of,
    text_of,
)
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.checksum import Checksum, is_exact, of_batch, total
from streamfrom.spark.jobs.clocks import check_closed
from streamfrom.spark.jobs.frames import mapped
from streamfrom.spark.jobs.job import JobConfig, Option, begun, broken_off, nanoseconds
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.jobs.reading import (
    acked_between,
    checksum_of_frame,
    checksums_of_servers,
    read_rows,
    slices,
)
from streamfrom.spark.jobs.writing import insert_frame, targets_of
from streamfrom.spark.keyspace_ids import KeyspaceIdError, Shards, keyspace_ids
from streamfrom.spark.passwords import password
from streamfrom.spark.table_schema import Field, fields_of, kept_type


if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession

STEPS: Final = ("plan", "copy", "verify")
SLICE_ROWS: Final = 50_000
SLICES_MAX: Final = 500
_TARGET: Final = ("--to-proxy", "--to-password-env")
_WAITING: Final = "time_acked IS NULL"
_SHARD_SUMS: Final = "shard string, rows bigint, bits string"


@dataclass(frozen=True)
class ReshardConfig(JobConfig):
    """The keyspace to copy from, the one to copy to, and the part of the table.

    until_ns: the time before which the copied rows were acknowledged; None for all rows, once writes have stopped.
    """

    step: Annotated[str, Option("step", "", "plan only counts and checks", choices=STEPS)]
    target: Annotated[
        Endpoint,
        Option(
            "--to-proxy",
            "URL",
            "the keyspace with the new shards, mysql://user@host:port/keyspace",
            str,
        ),
    ]
    until_ns: Annotated[
        int | None,
        Option(
            "--until",
            "T",
            "what was acknowledged before, while both sides work; ISO date or time, UTC",
            nanoseconds,
            "part",
        ),
        Option(
            "--stopped",
            "",
            "all rows: no client writes to the source any more",
            group="part",
        ),
    ]
    to_password_env: Annotated[
        str, Option("--to-password-env", "V", "the variable that holds the password there")
    ] = ""

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
    """What the servers said: shards on both sides, the columns, and what routes a row."""

    source_shards: tuple[str, ...]
    target_shards: tuple[str, ...]
    columns: tuple[Field, ...]
    vindex_column: str
    vindex: str


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
    move = _checked(config)
    with broken_off():
        step = {"plan": _plan, "copy": _copy, "verify": _verify}[config.step]
        counts = step(spark, config, move, progress)
    progress.leave()
    return Report(f"reshard {config.step}", config.name, counts, progress.steps_s)


# --- what must be true ---------------------------------------------------------------------------


def _checked(config: ReshardConfig) -> TableMove:
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
    return TableMove(tuple(source_shards), tuple(target_shards), columns, column, vindex)


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


def _condition(config: ReshardConfig) -> str:
    return "1 = 1" if config.until_ns is None else f"time_acked < {config.until_ns:d}"


def _conditions(config: ReshardConfig, move: TableMove) -> list[str]:
    """Cut the rows that move into slices: of time, and what waits."""
    low_ns = high_ns = None
    rows = 0
    extent = f"SELECT COUNT(*), MIN(time_acked), MAX(time_acked) FROM {quoted(config.table)} WHERE time_acked IS NOT NULL"  # noqa: S608  quoted
    for shard in move.source_shards:
        ((counted, least, most),) = config.endpoint.ask(extent, shard=shard)
        if least is not None:
            rows += int(counted)
            low_ns = min(int(least), low_ns if low_ns is not None else int(least))
            high_ns = max(int(most) + 1, high_ns or 0)
    result = [] if config.until_ns is not None else [_WAITING]
    if low_ns is not None and high_ns is not None:
        high_ns = min(high_ns, config.until_ns or high_ns)
        count = max(1, min(SLICES_MAX, -(-rows // SLICE_ROWS)))
        cuts = slices(low_ns, high_ns, count) if low_ns < high_ns else []
        result += [acked_between("", low, high)[1] for low, high in cuts]
    return result


def _by_condition(
    spark: "SparkSession",
    endpoint: Endpoint,
    config: ReshardConfig,
    move: TableMove,
    shards: "Sequence[str]",
    conditions: "Sequence[str]",
) -> dict[str, Checksum]:
    parts = [(shard, condition) for shard in shards for condition in conditions]
    found = dict.fromkeys(conditions, Checksum())
    for (_, condition), checksum in checksums_of_servers(
        spark, endpoint, config.table, move.columns, parts
    ):
        found[condition] += checksum
    return found


def _plan(
    spark: "SparkSession", config: ReshardConfig, move: TableMove, progress: Progress
) -> dict[str, int]:
    progress.enter("plan")
    sums = _expected(spark, config, move)
    return {"rows": sum(s.rows for s in sums.values())} | {
        f"to {shard}": sums[shard].rows for shard in move.target_shards
    }


def _copy(
    spark: "SparkSession", config: ReshardConfig, move: TableMove, progress: Progress
) -> dict[str, int]:
    progress.enter("compare")
    conditions = _conditions(config, move)
    ours = _by_condition(spark, config.endpoint, config, move, move.source_shards, conditions)
    theirs = _by_condition(spark, config.target, config, move, move.target_shards, conditions)
    missing = [c for c in conditions if ours[c].rows and ours[c] != theirs[c]]
    rows = sum(found.rows for found in ours.values())
    progress.enter("copy")
    copied = 0
    if missing:
        parts = [(shard, condition) for condition in missing for shard in move.source_shards]
        frame = read_rows(spark, config.endpoint, config.table, move.columns, parts)
        kept = targets_of(config.target, move.target_shards[0], config.table)
        names = [column.name for column in kept if not column.is_generated]
        wanted = sum(ours[condition].rows for condition in missing)
        sent, copied = insert_frame(
            frame.select(*map(quoted, names)), config.target, config.table, wanted, progress
        )
        rows += sent - wanted  # rows that came or went since they were counted
    return {"rows": rows, "copied": copied, "there before": rows - copied}


def _expected(
    spark: "SparkSession", config: ReshardConfig, move: TableMove
) -> dict[str, Checksum]:
    """Return what each shard of the target ought to have, computed from the source's rows."""
    parts = [(shard, _condition(config)) for shard in move.source_shards]
    frame = read_rows(spark, config.endpoint, config.table, move.columns, parts)
    columns, column, vindex = move.columns, move.vindex_column, move.vindex
    owners = Shards.named(move.target_shards)

    def sums(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            ids = batch.column(column)
            names = owners.owning(keyspace_ids(ids, vindex))
            for shard in owners.names:
                found = of_batch(batch.filter(pa.compute.equal(names, shard)), columns)
                yield pa.RecordBatch.from_pylist(
                    [{"shard": shard, "rows": found.rows, "bits": str(found.bits)}]
                )

    return _by_shard(mapped(frame, sums, _SHARD_SUMS), move)


def _by_shard(frame: "DataFrame", move: TableMove) -> dict[str, Checksum]:
    found = dict.fromkeys(move.target_shards, Checksum())
    for row in frame.collect():
        found[row["shard"]] += Checksum(row["rows"], int(row["bits"]))
    return found


def _verify(
    spark: "SparkSession", config: ReshardConfig, move: TableMove, progress: Progress
) -> dict[str, int]:
    progress.enter("source")
    expected = _expected(spark, config, move)
    progress.enter("target")
    condition, table = _condition(config), config.table
    parts = [(shard, condition) for shard in move.target_shards]
    found = {}
    if is_exact(move.columns):
        found = {
            shard: checksum
            for (shard, _), checksum in checksums_of_servers(
                spark, config.target, table, move.columns, parts
            )
        }
    for shard in move.target_shards:
        if found.get(shard) != expected[shard]:
            # A server may write a rare type in another way: what it sends decides.
            rows = read_rows(spark, config.target, table, move.columns, [(shard, condition)])
            found[shard] = checksum_of_frame(rows, move.columns)
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
        f"on {shard}": found[shard].rows for shard in move.target_shards
    }
