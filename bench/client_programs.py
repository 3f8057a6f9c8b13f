"""The command-line clients of MariaDB and MySQL, as the workloads run them."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from bench.lab import MYSQL9, Endpoint
from bench.processes import HOST, LabError
from streamfrom.proxy.embedded.servers import Family


RUN_S: Final = 120.0


def client(*names: str) -> list[str]:
    """Return the command of the first of these programs that is installed.

    Raises:
        LabError: none is.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(MYSQL9 / "bin")])
    for name in names:
        program = shutil.which(name, path=path)
        if program is not None:
            inside = Path(program).is_relative_to(MYSQL9)  # its wrapper says it already
            return [program] if inside else [program, "--no-defaults"]
    raise LabError(f"none of {', '.join(names)} is installed")


def address(program: list[str], target: Endpoint) -> list[str]:
    """Return the options with which *program* logs in at *target*, without TLS."""
    version = output([*program, "--version"])
    plain = "--skip-ssl" if Family.MARIADB in version.lower() else "--ssl-mode=DISABLED"
    return [f"--host={HOST}", f"--port={target.port}", "--user=root", "--protocol=tcp", plain]


def output(arguments: list[str], stdout: int = subprocess.PIPE) -> str:
    """Run a program and return what it prints; nothing where *stdout* is not a pipe.

    Raises:
        LabError: it failed.
    """
    done = subprocess.run(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    if done.returncode:
        raise LabError(f"{arguments[0]} failed: {done.stderr}")
    return done.stdout or ""
