"""Bring suites here by the ordinary clients of their registries: pip, go, npm, Maven, apt-get.

Everything goes into one folder that is kept. Nothing is installed on the machine, and nothing needs
root. What arrives whole gets its last name last, so an interrupted download is no half a suite.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.suites.suite import MissingProgram, SuiteError


FETCH_S: Final = 600.0


def _once(folder: Path, make: Callable[[Path], Path]) -> Path:
    """Return *folder*; where it is missing it is what *make* returns inside of a folder that is for it alone."""
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            make(Path(scratch)).rename(folder)
    return folder


def sdist(cache: Path, name: str, version: str) -> Path:
    """Return the folder of a package's source distribution from PyPI."""

    def make(scratch: Path) -> Path:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        wanted = ["--no-binary", name, "--dest", str(scratch), f"{name}=={version}"]
        call([*pip, "download", "--quiet", "--no-deps", *wanted])
        (archive,) = scratch.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        return scratch / archive.name.removesuffix(".tar.gz")

    return _once(cache / f"{name.lower()}-{version}", make)


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

    def make(scratch: Path) -> Path:
        _need("go", "Go 1.22 or newer")
        modules = cache / "go"
        environ = {"GOMODCACHE": str(modules), "GOFLAGS": "-modcacherw"}
        call(["go", "mod", "download", f"{path}@v{version}"], cwd=cache, environ=environ)
        return Path(shutil.copytree(modules / f"{path}@v{version}", scratch / "copy"))

    return _once(cache / f"{path.replace('/', '-')}-{version}", make)


def go_program(path: str, version: str, tags: str) -> Callable[[Path], Path]:
    """Return what builds a Go program of the module proxy and returns where it is."""
    name = path.rpartition("/")[2]

    def make(scratch: Path) -> Path:
        _need("go", "Go 1.22 or newer")
        environ = {"GOBIN": str(scratch / "bin")}
        call(["go", "install", "-tags", tags, f"{path}@v{version}"], environ=environ)
        return scratch / "bin"

    return lambda cache: _once(cache / f"{name}-{version}", make) / name


def node_modules(name: str, packages: Sequence[str]) -> Callable[[Path], Path]:
    """Return what installs *packages* of npm and returns their `node_modules`."""

    def make(scratch: Path) -> Path:
        _need("npm", "Node with npm")
        options = ["--silent", "--no-audit", "--no-fund", "--prefix", str(scratch)]
        call(["npm", "install", *options, *packages])
        return scratch / "node_modules"

    # Of this name, or modules do not find one another.
    return lambda cache: _once(cache / f"node-{name}" / "node_modules", make)


def java_libraries(project: Path) -> Callable[[Path], Path]:
    """Return what copies the dependencies of a Maven *project* into a folder and returns it."""

    def make(scratch: Path) -> Path:
        _need("java", "a JDK 17 or newer")
        _need("mvn", "Maven")
        wanted = ("dependency:copy-dependencies", f"-DoutputDirectory={scratch}/jars")
        call(["mvn", "-q", "-B", "-f", str(project), *wanted])
        return scratch / "jars"

    return lambda cache: _once(cache / "java-libraries", make)


def debian_tree(cache: Path, *packages: str, needs_root: bool = True) -> Path:
    """Return a folder with Debian packages and what they need of others that are not installed.

    needs_root: what is in it runs by `tools/inside.sh`.
    """
    if needs_root and os.geteuid() != 0:
        raise MissingProgram("only root may have it run over this machine's files")

    def make(scratch: Path) -> Path:
        _need("apt-get", f"what Debian calls {packages[0]}")
        apt = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends"]
        kept = f"Dir::Cache::archives={scratch}"
        call([*apt, "--download-only", "--option", kept, *packages])
        root = scratch / "root"
        for archive in scratch.glob("*.deb"):
            call(["dpkg-deb", "--extract", str(archive), str(root)])
        # Where these are links today, a folder would hide what they lead to.
        for name in ("bin", "sbin", "lib"):
            if (there := root / name).is_dir():
                shutil.copytree(there, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
                shutil.rmtree(there)
        return root

    return _once(cache / f"debian-{packages[0]}", make)


def _need(program: str, what: str) -> None:
    if shutil.which(program) is None:
        raise MissingProgram(f"no {program} on this machine: install {what}")


def debian_program(cache: Path, package: str, program: str) -> Path:
    """Return a program of a Debian package: the installed one, or one unpacked into *cache*."""
    if (installed := shutil.which(program)) is not None:
        return Path(installed)

    def make(scratch: Path) -> Path:
        _need("apt-get", f"what Debian calls {package}")
        call(["apt-get", "download", "--quiet", package], cwd=scratch)
        (archive,) = scratch.glob("*.deb")
        call(["dpkg-deb", "--extract", str(archive), f"{scratch}/root"])
        return scratch / "root"

    return _once(cache / package, make) / "usr/bin" / program


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
