"""Other programs of the laboratory: they listen, and end with us."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from bench.fleet import LabError, die_with_parent
from tests.fixtures.running_proxy import LISTENING


HOST: Final = "127.0.0.1"
ROOT: Final = Path(__file__).parents[1]
START_S: Final = 30.0
STOP_S: Final = 20.0
RUN_S: Final = 300.0


@contextlib.contextmanager
def process(
    program: list[str],
    log: Path,
    *,
    may_be_killed: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run *program* with its output in *log*; end it by SIGTERM, or SIGKILL if it takes too long.

    may_be_killed: the workload kills it, so an earlier end is no failure.
    environ: variables added to ours or overriding them.

    Raises:
        LabError: it ended on its own.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            program,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=os.environ | (environ or {}),
            preexec_fn=die_with_parent,  # noqa: PLW1509 - the harness has only one thread
            start_new_session=True,
        )
    try:
        yield process
        if process.poll() is not None and not may_be_killed:
            raise LabError(f"{program[-1]}: ended by itself ({process.returncode}):{tail(log)}")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def output(
    arguments: list[str],
    stdout: int = subprocess.PIPE,
    environ: Mapping[str, str] | None = None,
) -> str:
    """Run a program and return its output, or nothing if *stdout* is not a pipe.

    environ: variables added to ours or overriding them.

    Raises:
        LabError: it failed.
    """
    done = subprocess.run(
        arguments,
        cwd=ROOT,
        env=os.environ | (environ or {}),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    if done.returncode:
        raise LabError(f"{' '.join(arguments)} failed: {done.stderr[-2000:]}")
    return done.stdout or ""


def logged_port(process: "subprocess.Popen[bytes]", log: Path) -> int:
    """Return the port that the program logs when it listens."""
    deadline = time.monotonic() + START_S
    while not (found := LISTENING.search(log.read_text(errors="replace"))):
        if process.poll() is not None or time.monotonic() > deadline:
            raise LabError(f"the proxy does not listen; it said:{tail(log)}")
        time.sleep(0.02)
    return int(found[1])


@contextlib.contextmanager
def serving(
    program: list[str], log: Path, port: int, environ: Mapping[str, str] | None = None
) -> Iterator[int]:
    """Run *program* like `process`, and yield its *port* once it listens there."""
    deadline = time.monotonic() + 2 * START_S
    with process(program, log, environ=environ) as running:
        while True:
            try:
                socket.create_connection((HOST, port), 1).close()
                break
            except OSError as error:
                if running.poll() is not None or time.monotonic() > deadline:
                    raise LabError(f"{log.stem} does not listen: {error}{tail(log)}") from error
                time.sleep(0.05)
        yield running.pid


def tail(log: Path) -> str:
    """Return the end of a log, on separate lines."""
    return "\n" + log.read_text(errors="replace")[-3000:]
