"""What a cluster is given; that it runs there is `test_cli_cluster.py`."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from streamfrom.spark import package
from streamfrom.spark.errors import JobError


ROOT = Path(__file__).parents[2]


def test_all_modules_are_in_the_package_and_nothing_else(tmp_path):
    with zipfile.ZipFile(package.pack(tmp_path)) as file:
        names = set(file.namelist())
    files = [
        path for kind in ("py", "css", "html") for path in (ROOT / "spark").rglob(f"*.{kind}")
    ]
    modules = {f"streamfrom/{path.relative_to(ROOT)}" for path in files}
    assert names == modules | {"streamfrom/__init__.py"}


def test_the_command_names_what_was_written(tmp_path):
    told = package.write(tmp_path / "new", with_environment=False)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "main.py",
        "streamfrom-spark.zip",
    ]
    assert f"--py-files {tmp_path}/new/streamfrom-spark.zip" in told
    assert "--archives" not in told
    assert "environment.tar.gz#environment" in package.command(tmp_path, with_environment=True)


@pytest.mark.slow
def test_the_main_file_runs_with_the_package_alone(tmp_path):
    package.write(tmp_path, with_environment=False)
    told = subprocess.run(
        [sys.executable, "-P", tmp_path / "main.py", "archive", "--help"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "streamfrom-spark.zip")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "--from T0" in told.stdout


def pip(monkeypatch, code, wrote="", said=""):
    def run(command, **_):
        if wrote:
            (Path(command[command.index("--target") + 1]) / wrote).write_text("")
        return subprocess.CompletedProcess(command, code, "", said)

    monkeypatch.setattr("streamfrom.spark.package.subprocess.run", run)


def test_the_environment_holds_what_pip_installed_at_its_root(tmp_path, monkeypatch):
    pip(monkeypatch, 0, wrote="numpy.py")
    with tarfile.open(package.pack_environment(tmp_path)) as file:
        assert file.getnames() == ["numpy.py"]


def test_without_pip_the_cure_is_told(tmp_path, monkeypatch):
    pip(monkeypatch, 1, said="x\npython: No module named pip\n")
    with pytest.raises(
        JobError, match=r"No module named pip; see that .*--without-environment"
    ):
        package.pack_environment(tmp_path)
