"""`python -m streamfrom_worker module:worker`: run a worker; with --reload, again after each change."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from asyncmy.errors import MySQLError

from .worker import Worker


LOOK_S = 0.5
PLAIN = frozenset(logging.makeLogRecord({}).__dict__) | {"asctime", "message"}


class WithFields(logging.Formatter):
    """A formatter that appends the fields of a record to its line."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the message and each field that has a value."""
        fields = {
            name: value
            for name, value in record.__dict__.items()
            if name not in PLAIN and value is not None
        }
        text = super().formatMessage(record)
        return " ".join([text, *(f"{name}={value}" for name, value in fields.items())])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line *arguments*; return the exit code."""
    parser = argparse.ArgumentParser("python -m streamfrom_worker", description=__doc__)
    parser.add_argument("worker", metavar="module:worker", help="where the Worker is")
    parser.add_argument(
        "--reload",
        action="store_true",
        help="start again when a file below this folder changes",
    )
    parser.add_argument("--verbose", action="store_true", help="log each message")
    options = parser.parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(WithFields("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    if options.verbose:
        logging.getLogger("streamfrom_worker").setLevel(logging.DEBUG)
    if options.reload:
        rest = [one for one in (arguments or sys.argv[1:]) if one != "--reload"]
        return reloading([sys.executable, "-m", "streamfrom_worker", *rest], Path.cwd())
    sys.path.insert(0, os.fspath(Path.cwd()))
    try:
        worker = load(options.worker)
    except (ImportError, AttributeError, TypeError) as error:
        print(f"cannot load {options.worker}: {error}", file=sys.stderr)  # noqa: T201
        return 2
    try:
        worker.run()
    except (MySQLError, ValueError) as error:
        print(f"{options.worker}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def load(name: str) -> Worker:
    """Return the worker named by `module:attribute`.

    Raises:
        ImportError, AttributeError, TypeError: there is no such worker.
    """
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute or "worker")
    if not isinstance(found, Worker):
        raise TypeError(f"{name} is a {type(found).__name__}, not a Worker")
    return found


def reloading(command: Sequence[str], folder: Path) -> int:
    """Run *command*, and restart it whenever a Python file in *folder* changes, until a signal."""
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: stopped.append(got))
    while True:
        seen = _changes(folder)
        process = subprocess.Popen(command)  # noqa: S603 - this program itself
        while not stopped and process.poll() is None and _changes(folder) == seen:
            time.sleep(LOOK_S)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        code = process.wait()
        if stopped:
            return code
        while code and _changes(folder) == seen and not stopped:
            time.sleep(LOOK_S)  # it failed: only a change can help


def _changes(folder: Path) -> Mapping[Path, float]:
    found = {}
    for path in folder.rglob("*.py"):
        with contextlib.suppress(OSError):  # deleted between the two steps
            found[path] = path.stat().st_mtime
    return found


if __name__ == "__main__":
    sys.exit(main())
