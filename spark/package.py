"""What a cluster needs to run the jobs, in one folder: `streamfrom-spark package --out DIR`.

    streamfrom-spark.zip    this package, for --py-files
    environment.tar.gz      what it imports, at the versions that are installed here, for --archives
    main.py                 the main file for spark-submit

The executors need nothing then but a Python of the same version as here and the same kind of machine; pyspark is Spark's own there.
"""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

from streamfrom.spark.errors import JobError


NEEDED: Final = ("cryptography", "Jinja2", "numpy", "pandas", "pyarrow", "PyMySQL", "xxhash")
PACKAGE: Final = "streamfrom-spark.zip"
ENVIRONMENT: Final = "environment.tar.gz"
MAIN: Final = "main.py"
MAIN_SOURCE: Final = "cli.py"  # it loads the rest only when it runs


def pack(folder: Path) -> Path:
    """Write the package `streamfrom.spark` as a zip file into *folder* and return its path."""
    here = Path(__file__).parent
    target = folder / PACKAGE
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for path in (
            here.parent / "__init__.py",
            *(
                path
                for kind in ("py", "css", "html")
                for path in sorted(here.rglob(f"*.{kind}"))
            ),
        ):
            file.write(path, path.relative_to(here.parents[1]))
    return target


def pack_environment(folder: Path) -> Path:
    """Write what the package imports into *folder*, as an archive of what would be in site-packages, and return its path.

    Raises:
        JobError: pip is missing, or cannot install it.
    """
    target = folder / ENVIRONMENT
    wanted = [f"{name}=={version(name)}" for name in NEEDED]
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(  # noqa: S603  no shell, and nothing of it comes from outside
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", name, *wanted],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise JobError(
                f"pip cannot install {' '.join(wanted)}: {_last_line(done.stderr)}; see that"
                f" {sys.executable} -m pip works, or leave it out (--without-environment)"
            )
        with tarfile.open(target, "w:gz", compresslevel=1) as file:
            for path in sorted(Path(name).iterdir()):
                file.add(path, path.name)
    return target


def command(folder: Path, *, with_environment: bool) -> str:
    """Return how a job is submitted with what is in *folder*."""
    # Spark's own log would bury what a job says of itself.
    lines = [
        "spark-submit --master spark://master:7077 --conf spark.log.level=WARN",
        f"  --py-files {folder / PACKAGE}",
    ]
    if with_environment:
        lines += [
            f"  --archives {folder / ENVIRONMENT}#environment",
            "  --conf spark.executorEnv.PYTHONPATH=./environment",
        ]
    lines.append(f"  {folder / MAIN} JOB --proxy mysql://user@host:15306/keyspace --table T …")
    return " \\\n".join(lines)


def write(folder: Path, *, with_environment: bool) -> str:
    """Write all files into *folder*, in place of older ones, and return the command that uses them.

    Raises:
        JobError: as for `pack_environment`.
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pack(folder)
    (folder / MAIN).write_text(Path(__file__).with_name(MAIN_SOURCE).read_text())
    if with_environment:
        pack_environment(folder)
    return command(folder, with_environment=with_environment)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it says nothing"])[-1]
