"""What is installed: the wheel, from this folder and from the sdist, beside a package that has one of our folders' names."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pymysql
import pytest

from tests.fixtures.database_servers import DatabaseServer, fresh_database
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import LISTENING, keyspace_toml, with_port
from tests.fixtures.streams import eventually, rows, run
from tests.release.sbom import sbom


ROOT = Path(__file__).parents[2]
END_S = 60.0
PACKAGES = ("proxy", "engine", "sqlparse_ext", "spark")
# What pip says of an index that it cannot reach, and of nothing else.
UNREACHABLE = re.compile(r"[Cc]onnection (?:error|broken)|ConnectTimeout|NewConnectionError")


def environment() -> dict[str, str]:
    """Return the environment of this process without the folders that its Python looks into.

    pip would take a package that it finds there for installed.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def ran(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """Return what a command wrote, both ways; it must end with *code*."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout[-5000:]
    return done.stdout


def build(source: Path, *options: str | Path) -> None:
    ran(sys.executable, "-m", "hatchling", "build", *options, cwd=source)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds the wheel and the sdist of this repository."""
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, "-d", folder)
    return folder


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def test_the_wheel_holds_each_file_of_the_packages_once_and_nothing_else(built):
    with zipfile.ZipFile(only(built, "*.whl")) as wheel:
        found = [name for name in wheel.namelist() if ".dist-info/" not in name]
    wanted = [
        f"streamfrom/{path.relative_to(ROOT)}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    ]
    assert len(wanted) > 300
    assert sorted(found) == sorted([*wanted, "streamfrom/__init__.py", "streamfrom/py.typed"])


def test_the_sdist_makes_the_same_wheel(built, tmp_path):
    """It has no symbolic links, like a clone with core.symlinks=false."""
    ran("tar", "xzf", only(built, "*.tar.gz"), cwd=tmp_path)
    source = only(tmp_path, "streamfrom-*")
    assert not [path for path in source.rglob("*") if path.is_symlink()]
    build(source, "-t", "wheel", "-d", tmp_path)
    assert only(tmp_path, "*.whl").read_bytes() == only(built, "*.whl").read_bytes()


def test_what_the_image_is_built_from_makes_the_same_wheel(built, tmp_path):
    """Only what .dockerignore lets through, each file as new as this test: so no time of a file counts either."""
    allowed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    for name in allowed:
        source, target = ROOT / name, tmp_path / name
        if source.is_dir():
            nothing = shutil.ignore_patterns("__pycache__")
            shutil.copytree(
                source, target, symlinks=True, ignore=nothing, copy_function=shutil.copyfile
            )
        else:
            shutil.copyfile(source, target)
    build(tmp_path, "-t", "wheel", "-d", tmp_path)
    assert only(tmp_path, "*.whl").read_bytes() == only(built, "*.whl").read_bytes()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.M)
    names = {name for line in copied for name in line.split()} - {"."}
    assert names
    assert names <= set(allowed)


def test_the_bill_of_materials_has_what_the_image_installs():
    lock = (ROOT / "requirements-proxy.lock").read_text()
    found = sbom(lock, 1)
    assert found == sbom(lock, 1)
    assert found["components"] != []
    pinned = re.findall(r"^(\S+?)(?:\[.*\])?==([^\s;]+)", lock, re.MULTILINE)
    names = [(part["name"], part["version"]) for part in found["components"]]
    assert names == pinned


def installed(python: Path, *what: str | Path) -> None:
    """Have pip install *what*; skip the test where no index can be reached, but never under CI."""
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    done = finished([*pip, "--retries", "1", *what], env=environment())
    if done.returncode and UNREACHABLE.search(done.stderr) and not os.environ.get("CI"):
        pytest.skip("pip cannot reach its package index")
    assert done.returncode == 0, done.stderr[-5000:]


@pytest.fixture(scope="module")
def programs(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where an empty environment has its programs, with the wheel, what it needs and proxy.py in it."""
    folder = tmp_path_factory.mktemp("empty")
    ran(sys.executable, "-m", "venv", folder, cwd=folder)
    python = folder / "bin" / "python"
    installed(python, "--require-hashes", "--requirement", ROOT / "requirements-proxy.lock")
    installed(python, "--no-deps", only(built, "*.whl"))
    # Its package is called proxy: it comes last, so that it would overwrite one of ours.
    installed(python, "proxy.py")
    return python.parent


def listening(log: Path) -> re.Match[str] | None:
    return LISTENING.search(log.read_text())


@pytest.mark.db
@pytest.mark.slow
def test_the_wheel_runs_beside_proxy_py(programs, tmp_path, mariadb: DatabaseServer):
    def told(program: str, *arguments: str | Path, code: int = 0) -> str:
        return ran(programs / program, *arguments, cwd=tmp_path, code=code)

    ours = f"streamfrom {version('streamfrom')}\n"
    assert told("streamfrom", "--version") == ours
    assert told("python", "-m", "streamfrom.proxy", "--version") == ours
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", told("python", "-m", "proxy", "--version"))
    config = tmp_path / "streamfrom.toml"
    for database in fresh_database(mariadb):
        config.write_text(keyspace_toml("plain", [mariadb], database))
        assert "\nok       plain/-: " in told("streamfrom", "check", "--config", config)
        config.write_text(with_port(config.read_text()))
        serve = [programs / "streamfrom", "serve", "--config", config]
        log = tmp_path / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                serve, cwd=tmp_path, env=environment(), stdout=out, stderr=out
            )
        try:
            found = eventually(partial(listening, log), "listening", END_S)
            place = {"host": "127.0.0.1", "port": int(found[1]), "user": "root"}
            client = pymysql.connect(**place, database="plain", autocommit=True)
            run(client, "CREATE QUEUE email (address VARCHAR(200))")
            run(client, "INSERT INTO email (address) VALUES ('ada@example.com')")
            received = rows(client, "STREAM address FROM email LIMIT 1 WAIT 30")
            assert received == (("ada@example.com",),)
        finally:
            process.terminate()
            assert process.wait(END_S) == 0, log.read_text()
    # Spark is for those who ask for it.
    assert "pip install 'streamfrom[spark]'" in told("streamfrom-spark", "archive", code=2)
