"""Which server program is taken."""

import ast

from streamfrom.proxy.embedded.servers import (
    Family,
    family_of,
    find_server,
    install_program,
    no_defaults,
)
from tests.cases import cases


def test_a_named_program_comes_first_and_one_of_the_other_family_is_skipped(tmp_path):
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho 'mine Ver 9.9 for Linux'\n")
    program.chmod(0o755)
    assert find_server(environ={"MYSQLD": str(program)}) == program
    assert find_server(Family.MYSQL, {"MYSQLD": str(program)}) == program
    assert family_of(program) is Family.MYSQL
    program = tmp_path / "mysqld"
    program.write_text("#!/bin/sh\necho 'mysqld Ver 10.11.2-MariaDB for debian'\n")
    program.chmod(0o755)
    assert family_of(program) is Family.MARIADB
    assert find_server(Family.MYSQL, {"PATH": str(tmp_path)}) != program


@cases(text=str, options=ast.literal_eval)
def test_a_script_that_skips_the_systems_options_itself_is_not_told_to(tmp_path, text, options):
    program = tmp_path / "mysqld"
    program.write_text(text)
    assert no_defaults(program) == options


def test_the_install_script_beside_the_server_comes_first(tmp_path):
    for folder in ("sbin", "bin"):
        (tmp_path / folder).mkdir()
    script = tmp_path / "bin" / "mariadb-install-db"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    found = install_program(tmp_path / "sbin" / "mariadbd")
    assert found is not None
    assert script.samefile(found)
