"""What a suite is: a version that can be fetched, and a run that says how each test ended."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from streamfrom.proxy.embedded.servers import Family


HOST: Final = "127.0.0.1"


class Outcome(StrEnum):
    """How one test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


Outcomes = Mapping[str, Outcome]


class SuiteError(Exception):
    """A suite could not be fetched, or did not run; the message says what to do about it."""


class MissingProgram(SuiteError):
    """This machine lacks what a suite is fetched or run with."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: where the suite is, which server it is for, and a folder for what it leaves.

    port: of the server or of the proxy; root has no password.
    log: the file for all that the suite prints.
    """

    suite_folder: Path
    family: Family
    port: int
    log: Path


def run_into(
    log: Path, command: Sequence[str], limit_s: float, folder: Path, **environ: str
) -> int:
    """Run *command* in *folder*, add all that it says to *log*, and return its exit code.

    Raises:
        subprocess.TimeoutExpired: it takes longer than *limit_s*.
    """
    with log.open("ab") as out:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=os.environ | environ,
            timeout=limit_s,
            check=False,
        ).returncode


@dataclass(frozen=True, slots=True)
class Suite:
    """One suite.

    name: as the command line and the base line call it.
    version: of what `fetch` brings; part of the base line.
    families: the servers that it was written for.
    databases: what has to exist before it starts, a keyspace each; the first is the main one.
    fetch: bring it into a folder that keeps it, nothing if it is there; return where it is.
    run: run all of it, and return how each test ended.
    """

    name: str
    version: str
    families: tuple[Family, ...]
    databases: tuple[str, ...]
    fetch: Callable[[Path], Path]
    run: Callable[[Run], Outcomes]
