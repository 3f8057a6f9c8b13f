"""Files that are there whole or not at all, and that stay there when a machine loses its power; and what Spark calls them."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pathlib import Path


def spark_path(path: "Path") -> str:
    """Return an absolute *path* as Spark takes it: unlike a URI's, its spaces and letters are not encoded, for it decodes none."""
    return f"file:{path}"


@contextmanager
def locked(home: "Path", refusal: Exception) -> "Iterator[None]":
    """Keep other runs out of a folder; a killed one lets go by itself. Raises *refusal* while another run is at work."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "_lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise refusal from error
        yield


def written_whole(path: "Path", text: str) -> None:
    """Write a file that is there whole or not at all, and for good once this returns."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    flush(draft)
    draft.rename(path)
    flush(path.parent)


def flush_all(folder: "Path") -> None:
    """Have the system bring a folder, and all that is in it, to the disk."""
    for path in (folder, *folder.rglob("*")):
        flush(path)


def flush(path: "Path") -> None:
    """Have the system bring a file, or a folder's names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
