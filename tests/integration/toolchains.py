"""What drivers of other languages need: their program built, or the test skipped with a reason.

The usual run takes what the machine has, and what Go and npm bring in seconds. `DRIVERS=all` also
fetches what is large or rarely there: the JDBC drivers by Maven, another mysql-connector-python by
pip. Nothing is installed on the machine; whatever cannot be had is skipped and says why.
"""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.suites import fetching
from tests.suites.suite import SuiteError


PROGRAMS: Final = Path(__file__).parent / "drivers"
STATE: Final = Path(__file__).parents[2] / ".state/drivers"
EVERYTHING: Final = os.environ.get("DRIVERS") == "all"
BUILD_S: Final = 180
INSIDE: Final = Path(fetching.__file__).parent / "tools/inside.sh"
DEBIAN_JAR: Final = Path("/usr/share/java/mariadb-java-client.jar")
CONNECTOR_J: Final = "com.mysql:mysql-connector-j:9.7.0"
MARIADB_3: Final = "org.mariadb.jdbc:mariadb-java-client:3.5.6"
# The last whose wheel is content with the OpenSSL of Debian 12, or brings its own.
CONNECTOR_C: Final = "mysql-connector-python==9.7.0"


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on this machine")
    return found


def build(command: list[str], folder: Path) -> None:
    """Run *command* in *folder*; most of this fetches from a registry, which may be out of reach."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=BUILD_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{command[0]} did not finish in {BUILD_S} s")
    if done.returncode:
        told = (done.stderr + done.stdout)[-500:]
        pytest.skip(f"{' '.join(command)} failed here: {told}")


def python(name: str, module: str) -> list[str]:
    """Return the command of a Python program; *module* is what its driver is."""
    interpreter = sys.executable
    if module == "_mysql_connector":
        interpreter = _python_with_c_extension()
    else:
        pytest.importorskip(module, reason=f"{module} is not installed", exc_type=ImportError)
    return [interpreter, str(PROGRAMS / "python" / f"{name}.py")]


def _python_with_c_extension() -> str:
    try:
        importlib.import_module("_mysql_connector")
    except ImportError as error:
        if not EVERYTHING:
            pytest.skip(f"mysql-connector-python has no C extension here: {error}")
    else:
        return sys.executable
    return str(python_with("connector", [CONNECTOR_C]))


def python_with(name: str, packages: list[str]) -> Path:
    """Return the Python of an environment of its own that has *packages*; only `DRIVERS=all` makes one."""
    if not EVERYTHING and not (STATE / f"venv-{name}").exists():
        pytest.skip(f"no environment with {packages[0]} on this machine: DRIVERS=all makes one")
    STATE.mkdir(parents=True, exist_ok=True)
    try:
        return fetching.python_with(STATE, name, packages)
    except SuiteError as error:
        pytest.skip(f"{packages} cannot be had here: {error}")


def in_debian(packages: list[str], command: str) -> list[str]:
    """Return what runs *command* where Debian's *packages* lie over this machine; only `DRIVERS=all` fetches them."""
    if not EVERYTHING and not (STATE / f"debian-{packages[0]}").exists():
        pytest.skip(f"no {packages[0]} on this machine: DRIVERS=all fetches it")
    STATE.mkdir(parents=True, exist_ok=True)
    try:
        tree = fetching.debian_tree(STATE, *packages)
    except SuiteError as error:
        pytest.skip(f"{packages[0]} cannot be had here: {error}")
    return [str(INSIDE), str(tree), "sh", "-ec", f"exec {command}"]


def c(folder: Path) -> list[str]:
    """Return the command of the program that fetches by libmariadb."""
    target = folder / "fetched"
    config = [program("mariadb_config"), "--cflags", "--libs"]
    flags = subprocess.run(config, capture_output=True, text=True, check=True).stdout.split()
    build([program("gcc"), "-o", str(target), "fetched.c", *flags], PROGRAMS / "c")
    return [str(target)]


def go(folder: Path, source: Path = PROGRAMS / "go") -> list[str]:
    target = folder / "driver"
    build([program("go"), "build", "-o", str(target), "."], source)
    return [str(target)]


def node(folder: Path, source: Path = PROGRAMS / "node", main: str = "main.js") -> list[str]:
    """Return the command of a Node program, in *folder* with the drivers that its package.json names."""
    interpreter, npm = program("node"), program("npm")
    shutil.copytree(source, folder, dirs_exist_ok=True)
    build([npm, "install", "--no-audit", "--no-fund"], folder)
    return [interpreter, str(folder / main)]


def php(folder: Path) -> list[str]:
    del folder
    interpreter = program("php")
    modules = subprocess.run(
        [interpreter, "-m"], capture_output=True, text=True, timeout=BUILD_S, check=True
    ).stdout.split()
    for module in ("mysqli", "pdo_mysql"):
        if module not in modules:
            pytest.skip(f"PHP has no {module} on this machine")
    return [interpreter, str(PROGRAMS / "php" / "main.php")]


def java(
    folder: Path, driver: str, source: Path = PROGRAMS / "java", main: str = "Driver"
) -> list[str]:
    """Return the command of a Java program with a JDBC *driver*: mysql, mariadb2 or mariadb3."""
    interpreter, javac = program("java"), program("javac")
    classes = f"{folder}:{_jar(driver)}"
    if not (folder / f"{main}.class").exists():
        build([javac, "-d", str(folder), f"{main}.java"], source)
    return [interpreter, "-cp", classes, main]


def example(folder: Path, source: Path, name: str) -> list[str]:
    """Return the command of a program of *source*, whatever its language, built in *folder*."""
    match name.split("."):
        case [_, "js"]:
            return node(folder / "node", source, name)
        case [_, "go"]:
            return go(folder, source)
        case [main, "java"]:
            return java(folder, "mariadb2", source, main)
        case _:
            return [sys.executable, str(source / name)]


def place(port: int) -> dict[str, str]:
    """Return the environment in which an example finds its proxy."""
    return {
        **os.environ,
        "PORT": str(port),
        "USER_NAME": "root",
        "PASSWORD": "",
        "JDBC_URL": f"jdbc:mariadb://127.0.0.1:{port}/commerce",
        "PYTHONUNBUFFERED": "1",
    }


def _jar(driver: str) -> Path:
    if driver == "mariadb2":
        if not DEBIAN_JAR.exists():
            pytest.skip("no MariaDB Connector/J 2 on this machine: install libmariadb-java")
        return DEBIAN_JAR
    artifact = CONNECTOR_J if driver == "mysql" else MARIADB_3
    group, name, version = artifact.split(":")
    repository = Path.home() / ".m2/repository" / group.replace(".", "/") / name
    if EVERYTHING and not (repository / version).exists():
        fetch = ["-B", "-q", "dependency:get", f"-Dartifact={artifact}", "-Dtransitive=false"]
        build([program("mvn"), *fetch], PROGRAMS)
    found = max(repository.glob(f"*/{name}-*.jar"), default=None)
    if found is None:
        pytest.skip(f"Maven has not brought {name} to this machine: DRIVERS=all lets it")
    return found
