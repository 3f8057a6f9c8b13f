"""What an archive consists of: a window of a table is published when its manifest exists.

    DIR/KEYSPACE/TABLE/LOW-HIGH/streamfrom_shard=…/*.parquet    the rows
    DIR/KEYSPACE/TABLE/_manifests/LOW-HIGH.json       says that they are complete, and their checksum
    DIR/KEYSPACE/TABLE/_staging/LOW-HIGH/             a run that has not come as far

A manifest appears by one rename, after the rows are on disk under their final name. Data without a
manifest is what a killed run left, and is made again.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.files import flush, locked, written_whole


if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Manifest:
    """One published window [low, high) of `time_acked`, in nanoseconds, and its rows' checksum."""

    low_ns: int
    high_ns: int
    rows: int
    checksum: int

    def has_part_of(self, low_ns: int | None, high_ns: int | None) -> bool:
        """Whether the window overlaps [low, high); None is no bound."""
        is_before = high_ns is None or self.low_ns < high_ns
        return is_before and (low_ns is None or low_ns < self.high_ns)


@dataclass(frozen=True, slots=True)
class ArchiveWindow:
    """The places of one window inside a table's archive."""

    home: "Path"
    low_ns: int
    high_ns: int

    @property
    def name(self) -> str:
        """The window's name in all three places."""
        return f"{self.low_ns}-{self.high_ns}"

    @property
    def data(self) -> "Path":
        """Where published rows are."""
        return self.home / self.name

    @property
    def staging(self) -> "Path":
        """Where rows are written first."""
        return self.home / "_staging" / self.name

    @property
    def manifest(self) -> "Path":
        """The file that publishes."""
        return self.home / "_manifests" / f"{self.name}.json"

    def published(self) -> Manifest | None:
        """Return the window's manifest, or None before it is published.

        Raises:
            JobError: another published window overlaps this one, or a manifest is damaged.
        """
        found = None
        for manifest in manifests(self.home):
            if (manifest.low_ns, manifest.high_ns) == (self.low_ns, self.high_ns):
                found = manifest
            elif manifest.has_part_of(self.low_ns, self.high_ns):
                other = ArchiveWindow(self.home, manifest.low_ns, manifest.high_ns).manifest
                raise RequestError(
                    f"{other} has part of this window already: choose another --from and --to"
                )
        return found

    def sweep(self) -> None:
        """Remove what a killed run left of this window before it was published."""
        for folder in (self.staging, self.data):
            if folder.exists():
                shutil.rmtree(folder)

    def publish(self, manifest: Manifest) -> None:
        """Make the staged rows the archive's, for good once this returns."""
        for path in self.staging.rglob("*"):
            flush(path)
        self.staging.rename(self.data)
        flush(self.home)
        self.manifest.parent.mkdir(parents=True, exist_ok=True)
        written_whole(self.manifest, json.dumps(asdict(manifest)))

    def locked(self) -> "AbstractContextManager[None]":
        """Keep other runs on this table's archive out. Raises JobError while another run is at work."""
        return locked(
            self.home, JobError(f"another run archives into {self.home}: wait for it")
        )


def manifests(home: "Path") -> list[Manifest]:
    """Return what is published in a table's archive, the oldest window first.

    Raises:
        JobError: a manifest is damaged.
    """
    found = []
    for path in (home / "_manifests").glob("*.json"):
        try:
            found.append(Manifest(**json.loads(path.read_text())))
        except (ValueError, TypeError) as error:
            raise JobError(f"{path} is damaged: restore it from a backup") from error
    return sorted(found, key=lambda manifest: manifest.low_ns)
