"""Write files atomically and durably, lock folders, and format paths for Spark."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pathlib import Path


def spark_path(path: "Path") -> str:
    """Return an absolute *path* in Spark's format: unlike a URI, it is not percent-encoded, because Spark does not decode it."""
    return f"file:{path}"


@contextmanager
def locked(home: "Path", refusal: Exception) -> "Iterator[None]":
    """Lock a folder against other runs; the lock of a killed run is released automatically. Raise *refusal* if another run has it."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "_lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise refusal from error
        yield


def written_whole(path: "Path", text: str) -> None:
    """Write a file atomically and durably."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    flush(draft)
    draft.rename(path)
    flush(path.parent)


def flush_all(folder: "Path") -> None:
    """Flush a folder and everything in it to disk."""
    for path in (folder, *folder.rglob("*")):
        flush(path)


def flush(path: "Path") -> None:
    """Flush a file, or a folder's names, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
