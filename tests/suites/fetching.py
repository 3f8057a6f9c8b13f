"""Bring suites here by the ordinary clients of their registries: pip, go, apt-get.

Everything goes into one folder that is kept. Nothing is installed on the machine, and nothing needs
root. What arrives whole gets its last name last, so an interrupted download is no half a suite.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.suites.suite import SuiteError


FETCH_S: Final = 600.0


def sdist(cache: Path, name: str, version: str) -> Path:
    """Return the folder of a package's source distribution from PyPI."""
    folder = cache / f"{name.lower()}-{version}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
            wanted = ["--no-binary", name, "--dest", scratch, f"{name}=={version}"]
            call([*pip, "download", "--quiet", "--no-deps", *wanted])
            (archive,) = Path(scratch).glob("*.tar.gz")
            with tarfile.open(archive) as packed:
                packed.extractall(scratch, filter="data")
            (Path(scratch) / archive.name.removesuffix(".tar.gz")).rename(folder)
    return folder


def python_with(cache: Path, name: str, packages: Sequence[str]) -> Path:
    """Return the Python of a virtual environment that has *packages*, named *name* in *cache*."""
    folder = cache / f"venv-{name}"
    stamp = folder / "packages"
    wanted = "\n".join((sys.version, *packages))
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        call([sys.executable, "-m", "venv", str(folder)])
        install = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        call([str(folder / "bin/python"), *install, *packages])
        stamp.write_text(wanted)
    return folder / "bin/python"


def go_module(cache: Path, path: str, version: str) -> Path:
    """Return a folder with a copy of a Go module and its tests, as the module proxy has it."""
    folder = cache / f"{path.replace('/', '-')}-{version}"
    if not folder.exists():
        if shutil.which("go") is None:
            raise SuiteError("no go on this machine: install Go 1.22 or newer")
        modules = cache / "go"
        environ = {"GOMODCACHE": str(modules), "GOFLAGS": "-modcacherw"}
        call(["go", "mod", "download", f"{path}@v{version}"], cwd=cache, environ=environ)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            copy = Path(scratch) / "copy"
            shutil.copytree(modules / f"{path}@v{version}", copy)
            copy.rename(folder)
    return folder


def debian_program(cache: Path, package: str, program: str) -> Path:
    """Return a program of a Debian package: the installed one, or one unpacked into *cache*."""
    installed = shutil.which(program)
    if installed is not None:
        return Path(installed)
    folder = cache / package
    if not folder.exists():
        if shutil.which("apt-get") is None:
            raise SuiteError(
                f"no {program} on this machine: install what Debian calls {package}"
            )
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            call(["apt-get", "download", "--quiet", package], cwd=Path(scratch))
            (archive,) = Path(scratch).glob("*.deb")
            call(["dpkg-deb", "--extract", str(archive), f"{scratch}/root"])
            (Path(scratch) / "root").rename(folder)
    return folder / "usr/bin" / program


def call(
    command: Sequence[str], *, cwd: Path | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """Run *command* and return what it printed; SuiteError with the end of it if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=os.environ | (environ or {}),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=FETCH_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SuiteError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise SuiteError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
