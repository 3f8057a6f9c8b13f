"""The layout of an archive: a folder for each window of a table.

    DIR/KEYSPACE/TABLE/LOW-HIGH/streamfrom_shard=…/*.parquet    the rows
    DIR/KEYSPACE/TABLE/LOW-HIGH/_manifest.json        their number and checksum
    DIR/KEYSPACE/TABLE/_staging/LOW-HIGH/             an unfinished run

A window appears by one rename, after all of it is on disk.
"""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.files import flush, flush_all, locked, written_whole


if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

_MANIFEST: Final = "_manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One window [low, high) of `time_acked`, in nanoseconds, and its rows' checksum."""

    low_ns: int
    high_ns: int
    rows: int = 0
    checksum: int = 0

    @property
    def name(self) -> str:
        """The name of the window's folder."""
        return f"{self.low_ns}-{self.high_ns}"

    def has_part_of(self, low_ns: int | None, high_ns: int | None) -> bool:
        """Whether the window overlaps [low, high); None means unbounded."""
        is_before = high_ns is None or self.low_ns < high_ns
        return is_before and (low_ns is None or low_ns < self.high_ns)


def published(home: "Path", window: Manifest) -> Manifest | None:
    """Return the published manifest of *window* in a table's archive, or None.

    Raises:
        JobError: another published window overlaps it, or a manifest is damaged or missing.
    """
    found = None
    for manifest in manifests(home):
        if manifest.name == window.name:
            found = manifest
        elif manifest.has_part_of(window.low_ns, window.high_ns):
            raise RequestError(
                f"{home / manifest.name} has part of this window already: choose another --from and --to"
            )
    if found is None and (home / window.name).exists():
        raise RequestError(
            f"{home / window.name} lacks its {_MANIFEST}: restore it, or remove the folder if its rows are still in"
            " the table"
        )
    return found


def staged_at(home: "Path", window: Manifest) -> "Path":
    """Return the staging folder of *window*."""
    return home / "_staging" / window.name


def publish(home: "Path", manifest: Manifest) -> None:
    """Publish the staged rows durably."""
    staging = staged_at(home, manifest)
    written_whole(staging / _MANIFEST, json.dumps(asdict(manifest)))
    flush_all(staging)
    staging.rename(home / manifest.name)
    flush(home)


def archive_locked(home: "Path") -> "AbstractContextManager[None]":
    """Lock a table's archive against other runs. Raises JobError if another run is active."""
    return locked(home, JobError(f"another run archives into {home}: wait for it"))


def manifests(home: "Path") -> list[Manifest]:
    """Return the published manifests of a table's archive, the oldest window first.

    Raises:
        JobError: a manifest is damaged, or where an earlier version kept it.
    """
    if (home / "_manifests").exists():
        raise RequestError(
            f"{home} is an archive of an earlier version: move each _manifests/LOW-HIGH.json to"
            f" LOW-HIGH/{_MANIFEST}, and remove _manifests"
        )
    found = []
    for path in home.glob(f"*/{_MANIFEST}"):
        try:
            found.append(Manifest(**json.loads(path.read_text())))
        except (ValueError, TypeError) as error:
            raise JobError(f"{path} is damaged: restore it from a backup") from error
    return sorted(found, key=lambda manifest: manifest.low_ns)
