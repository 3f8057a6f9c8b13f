"""The database server programs of this machine: where they are and which kind they are."""

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final


PROGRAM_FOLDERS: Final = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/opt/mysql9/bin")


class Family(StrEnum):
    """The two kinds of server; they differ in initialisation and in some options."""

    MARIADB = "mariadb"
    MYSQL = "mysql"


def find_server(
    family: Family | None = None, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """Return the server program to use, MariaDB before MySQL, or None.

    The environment variables MARIADBD and MYSQLD, in this order, come before what is installed. A
    *family* skips programs of the other one: `mysqld` is MariaDB on some systems.
    """
    named = [environ[name] for name in ("MARIADBD", "MYSQLD") if environ.get(name)]
    folders = [*environ.get("PATH", "").split(os.pathsep), *PROGRAM_FOLDERS]
    installed = (
        os.path.join(folder, name)
        for name in ("mariadbd", "mysqld")
        for folder in folders
        if folder
    )
    for program in (*named, *installed):
        if os.access(program, os.X_OK) and family in (None, family_of(Path(program))):
            return Path(program)
    return None


@functools.cache
def family_of(program: Path) -> Family:
    """Return which kind of server *program* is, as its --version says."""
    answer = subprocess.run(  # noqa: S603 - the caller's choice of program is the point
        [program, "--no-defaults", "--version"], capture_output=True, text=True, check=False
    )
    return Family.MARIADB if "MariaDB" in answer.stdout else Family.MYSQL


def install_program(program: Path) -> str | None:
    """Return the script that initialises data folders for the MariaDB server *program*."""
    beside = [str(program.resolve().parent / folder) for folder in ("", "../bin", "../scripts")]
    path = os.pathsep.join([*beside, os.environ.get("PATH", os.defpath), "/usr/bin"])
    names = ("mariadb-install-db", "mysql_install_db")
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


def no_defaults(program: Path) -> list[str]:
    """Return the option that keeps *program* from reading the system's my.cnf."""
    # A script around the server may say it already, and the server knows it only as the first.
    with program.open("rb") as file:
        head = file.read(4096)
    return [] if head.startswith(b"#!") and b"--no-defaults" in head else ["--no-defaults"]
