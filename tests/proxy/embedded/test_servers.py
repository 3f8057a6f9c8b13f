"""Servers of our own: they answer, keep their data, say why they failed, and never outlive us."""

import ast
import asyncio
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import (
    EmbeddedServer,
    EmbeddedServerError,
    Family,
    family_of,
    find_server,
    install_program,
    no_defaults,
)
from tests.cases import cases


HERE = Path(__file__).parents[3]


@pytest.fixture(scope="module", params=list(Family))
def program(request):
    """Either server program; for what the two families do differently."""
    found = find_server(request.param)
    if found is None:
        pytest.skip(f"no {request.param} server on this machine")
    return found


@pytest.fixture(scope="module")
def any_program():
    found = find_server()
    if found is None:
        pytest.skip("no server on this machine")
    return found


@pytest.fixture(scope="module")
def shared_server(program, tmp_path_factory):
    with EmbeddedServer(tmp_path_factory.mktemp("server"), program=program) as server:
        yield server
        server.kill()


@pytest.fixture
def server(shared_server):
    """A running server, the same for all tests that want one; initialising takes seconds."""
    shared_server.start()
    return shared_server


def query(server, sql, **where):
    where = where or {"host": "127.0.0.1", "port": server.port}
    connection = pymysql.connect(user="root", autocommit=True, **where)
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()
    finally:
        connection.close()


def is_alive(pid):
    """A zombie counts as gone: it only waits for the machine's init to take notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        # The second, where it goes between the opening of the file and its reading.
        return False


def wait_until_gone(pid, seconds=120.0):
    deadline = time.monotonic() + seconds
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.02)


@pytest.mark.db
def test_it_is_durable_and_keeps_to_loopback_and_to_its_folder(server, tmp_path):
    names = "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "bind_address", "tmpdir"
    ((*settings, folder),) = query(server, "SELECT @@" + ", @@".join(names))
    assert settings == [1, 1, 0, "127.0.0.1"]
    # Servers delete what they find in a folder of temporary tables that they share.
    assert Path(folder) == server.folder / "tmp"
    with pytest.raises(pymysql.MySQLError, match="secure-file-priv"):
        query(server, f"SELECT 1 INTO OUTFILE '{tmp_path}/x'")


@pytest.mark.db
def test_port_and_data_survive_a_restart_and_a_crash(server):
    query(server, "CREATE DATABASE shop")
    query(server, "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    port = server.port
    for end in (server.stop, server.kill):
        query(server, "INSERT INTO shop.t SELECT COUNT(*) FROM shop.t")
        end()
        assert not server.is_running
        assert server.pid is None
        server.start()
        assert server.port == port
    assert query(server, "SELECT COUNT(*) FROM shop.t") == ((2,),)


@pytest.mark.db
def test_half_an_initialisation_is_done_again_and_a_socket_too_deep_is_in_a_temporary_folder(
    any_program, tmp_path
):
    data = tmp_path / ("deep" * 25)
    (data / "data.new").mkdir(parents=True)
    (data / "data.new" / "ibdata1").write_text("half a file")
    with EmbeddedServer(data, program=any_program) as server:
        assert len(server.socket) < 108
        assert query(server, "SELECT 1", unix_socket=server.socket) == ((1,),)
        folder = Path(server.socket).parent
        server.kill()
    assert not folder.exists()


@pytest.mark.db
def test_options_of_the_caller_count_and_a_binary_log_is_written_on_demand(server):
    server.stop()
    options = (
        *("--max-connections=77", "--log-bin=binlog", "--server-id=1"),
        "--innodb-flush-log-at-trx-commit=2",
    )
    with EmbeddedServer(server.folder, program=server.program, options=options) as other:
        sql = "SELECT @@max_connections, @@log_bin, @@innodb_flush_log_at_trx_commit"
        assert query(other, sql) == ((77, 1, 2),)


@pytest.mark.db
def test_a_server_that_dies_at_its_start_says_why(server):
    server.stop()
    broken = EmbeddedServer(server.folder, program=server.program, options=["--nonsense=1"])
    with pytest.raises(EmbeddedServerError, match=r"ended at its start[^$]*nonsense"):
        broken.start()
    assert not broken.is_running


@pytest.mark.db
def test_a_taken_port_is_named(any_program, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        server = EmbeddedServer(tmp_path / "server", program=any_program, port=port)
        with pytest.raises(
            EmbeddedServerError, match=rf"port {port} of 127\.0\.0\.1 cannot be u"
        ):
            server.start()


@pytest.mark.db
def test_a_folder_in_use_is_refused(server, monkeypatch):
    monkeypatch.setattr("streamfrom.proxy.embedded.servers.STOP_S", -1)
    second = EmbeddedServer(server.folder, program=server.program)
    with pytest.raises(EmbeddedServerError, match="is in use by another server"):
        second.start()
    assert query(server, "SELECT 1") == ((1,),)


@pytest.mark.db
def test_a_cancelled_start_leaves_nothing_behind(any_program, tmp_path):
    server = EmbeddedServer(tmp_path / "server", program=any_program)

    async def cancel():
        task = asyncio.create_task(server.start_in_thread())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert not server.is_running


PARENT = """
import sys, threading
from pathlib import Path
from streamfrom.proxy.embedded.servers import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]), program=Path(sys.argv[2]))
# From a thread that ends, as asyncio.to_thread may do it.
starter = threading.Thread(target=server.start)
starter.start()
starter.join()
print(server.pid, flush=True)
sys.stdin.read()
"""


def start_parent(program, folder):
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, folder, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=HERE,
    )


@pytest.mark.db
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, None])
def test_however_its_parent_ends_the_server_ends(any_program, tmp_path, end):
    with start_parent(any_program, tmp_path) as parent:
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        if end is not None:
            parent.send_signal(end)
    wait_until_gone(pid)


@pytest.mark.db
def test_a_killed_parent_takes_its_server_along_but_not_the_data(server):
    query(server, "CREATE DATABASE kept")
    server.stop()
    with start_parent(server.program, server.folder) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    wait_until_gone(pid)
    server.start()
    query(server, "DROP DATABASE kept")


@pytest.mark.db
def test_a_parent_killed_while_it_initialises_leaves_no_process(any_program, tmp_path):
    folder = tmp_path / "server"
    with start_parent(any_program, folder) as parent:
        deadline = time.monotonic() + 120
        while not list(folder.glob("data.new/*")):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        parent.kill()
    deadline = time.monotonic() + 120
    while (
        left := subprocess.run(
            ["pgrep", "-f", str(folder)], capture_output=True, text=True, check=False
        ).stdout.split()
    ) and any(is_alive(pid) for pid in left):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_without_any_server_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("streamfrom.proxy.embedded.servers.find_server", lambda: None)
    with pytest.raises(EmbeddedServerError, match="install mariadb-server"):
        EmbeddedServer(tmp_path)


def shell_script(path, text):
    """Write a program, and return its path."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_program_that_is_no_server_shows_what_it_printed(tmp_path):
    program = shell_script(tmp_path / "mysqld", "echo hello from the wrong program\nexit 3")
    server = EmbeddedServer(tmp_path / "server", program=program)
    with pytest.raises(EmbeddedServerError, match=r"could not be initialised[^$]*hello from"):
        server.start()


# Which server program is taken.
def test_a_named_program_comes_first_and_one_of_the_other_family_is_skipped(tmp_path):
    program = shell_script(tmp_path / "mine", "echo 'mine Ver 9.9 for Linux'")
    assert find_server(environ={"MYSQLD": str(program)}) == program
    assert find_server(Family.MYSQL, {"MYSQLD": str(program)}) == program
    assert family_of(program) is Family.MYSQL
    program = shell_script(tmp_path / "mysqld", "echo 'mysqld Ver 10.11.2-MariaDB for debian'")
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
    script = shell_script(tmp_path / "bin" / "mariadb-install-db", "")
    found = install_program(tmp_path / "sbin" / "mariadbd")
    assert found is not None
    assert script.samefile(found)
