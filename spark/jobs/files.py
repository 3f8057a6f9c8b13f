"""Files that are there whole or not at all, and that stay there when a machine loses its power; and what Spark calls them."""

import os
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from pathlib import Path


def spark_path(path: "Path") -> str:
    """Return an absolute *path* as Spark takes it: unlike a URI's, its spaces and letters are not encoded, for it decodes none."""
    return f"file:{path}"


def written_whole(path: "Path", text: str) -> None:
    """Write a file that is there whole or not at all, and for good once this returns."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    flush(draft)
    draft.rename(path)
    flush(path.parent)


def flush(path: "Path") -> None:
    """Have the system bring a file, or a folder's names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
