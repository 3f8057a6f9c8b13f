"""A MariaDB or MySQL server of our own, for the demo, the tests and the benchmarks.

`EmbeddedServer(folder)` initialises the folder if it is empty, starts the server on 127.0.0.1 and
returns when it sends its greeting; root has no password. It touches nothing outside the
folder, except that a folder too deep for a Unix socket's path gets its socket under /tmp.

However the process that started it ends, the server ends too. A small shell, the guard, is the
server's parent and holds the reading end of a pipe whose writing end only we have: when that
closes, by `stop` or because SIGKILL ended us, the guard terminates the server, and kills it after a
time limit. (PR_SET_PDEATHSIG would not do: it follows the *thread* that forked, so a server started
from a worker thread dies with that thread.)
"""

import asyncio
import contextlib
import fcntl
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from streamfrom.proxy.config.dsn import UNIX_SOCKET_BYTES_MAX


PROGRAM_FOLDERS: Final = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/opt/mysql9/bin")


class Family(StrEnum):
    """The two kinds of server; they differ in initialisation and in some options."""

    MARIADB = "mariadb"
    MYSQL = "mysql"


def find_server(
    family: Family | None = None, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """Return the server program to use, preferring MariaDB to MySQL, or None.

    The environment variables MARIADBD and MYSQLD, in this order, take precedence over installed programs. A
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
    """Return the family of the server *program*, from its --version."""
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
    # A script around the server may pass the option already, and the server accepts it only as the first.
    with program.open("rb") as file:
        head = file.read(4096)
    return [] if head.startswith(b"#!") and b"--no-defaults" in head else ["--no-defaults"]


HOST: Final = "127.0.0.1"
START_S: Final = 90.0  # includes crash recovery on a busy machine
STOP_S: Final = 20
POLL_S: Final = 0.02
# A free port may be taken by another process before the server binds it
PORT_ATTEMPTS: Final = 5
LOG_TAIL_LINES: Final = 40  # the advice of mariadb-install-db alone is 25 lines


GUARD: Final = r"""
exec 9<&0
"$@" 9<&- </dev/null >&2 &
child=$!
echo "$child"
{
  read -r _ <&9
  kill -TERM "$child"
  sleep "$GUARD_STOP_S" &
  trap 'wait; exit' TERM
  wait
  kill -KILL 0
} >&2 &
wait "$child"
code=$?
[ -z "$GUARD_SOCKET_FOLDER" ] || rm -rf "$GUARD_SOCKET_FOLDER"
trap '' TERM
kill -TERM 0
wait
exit "$code"
"""  # fd 9 is the pipe; the last kill ends the second job, be it reading or sleeping.


class EmbeddedServerError(Exception):
    """An embedded server was not found or did not start; the message ends with its log."""


class EmbeddedServer:
    """One server with its own data folder. Start and stop may be repeated; data and port stay.

    folder: made if missing; holds data/, tmp/, files/, server.log, server.pid and the socket.
    port: 0 picks a free one at the first start.
    program: the server to run; None uses `find_server()`.
    options: more options of the server, such as "--max-connections=2000".

    Not for concurrent use: one thread starts and stops it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        program: Path | None = None,
        options: Sequence[str] = (),
    ) -> None:
        found = program or find_server()
        if found is None:
            raise EmbeddedServerError(
                "found neither mariadbd nor mysqld; install mariadb-server, or name the program"
                " in the environment variable MARIADBD or MYSQLD"
            )
        self.program = found
        self.family = family_of(found)
        self.folder = folder.absolute()
        self.port = port
        self.version = ""
        self.log_path = self.folder / "server.log"
        self._options = tuple(options)
        self._picks_port = port == 0
        self._guard: subprocess.Popen[str] | None = None
        self._pid: int | None = None
        self._socket = self.folder / "mysqld.sock"
        self._socket_folder: Path | None = None
        self._log_start = 0

    @property
    def socket(self) -> str:
        """The path of the Unix socket, valid while the server runs."""
        return str(self._socket)

    @property
    def pid(self) -> int | None:
        """The server's process id, None when it does not run."""
        return self._pid if self.is_running else None

    @property
    def is_running(self) -> bool:
        """Whether the process is alive."""
        return self._guard is not None and self._guard.poll() is None

    def start(self) -> None:
        """Start the server and return when it answers; do nothing if it runs.

        Raises EmbeddedServerError, with the end of its log, if the port is taken, the folder is in use by another server, or the server
        ended or did not answer in 90 s.
        """
        if self.is_running:
            return
        self._forget()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self._locked_folder() as lock:
            if not (self.folder / "data").exists():
                self._initialise(lock)
            self._place_socket()
            for attempt in range(1, PORT_ATTEMPTS + 1):
                try:
                    self._choose_port()
                    self._launch(lock)
                    self._picks_port = False
                    return
                except BaseException as error:
                    self.stop()
                    lost = self._picks_port and "already in use" in str(error)
                    if not lost or attempt == PORT_ATTEMPTS:
                        raise
                    self.port = 0

    def stop(self) -> None:
        """Terminate the server, kill it after 20 s, and return when it is gone."""
        if self._guard is not None:
            assert self._guard.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._guard.stdin.close()
            try:
                self._guard.wait(STOP_S + 10)
            except subprocess.TimeoutExpired:
                os.killpg(self._guard.pid, signal.SIGKILL)
        self._forget()

    def kill(self) -> None:
        """Crash the server by SIGKILL, without a flush. `start` recovers it."""
        pid = self.pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        self.stop()

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """Return the last lines that the server has logged since its last start."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(self._log_start)
                text = log.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def start_in_thread(self) -> None:
        """Start as `start` does, without blocking the loop; if cancelled, leave no server behind."""
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread cannot be interrupted: let it finish, then stop the server.
            with contextlib.suppress(EmbeddedServerError):
                await starting
            await asyncio.to_thread(self.stop)
            raise

    @contextlib.contextmanager
    def _locked_folder(self) -> Iterator[int]:
        """Hold the folder's lock; the server inherits it, so it lasts as long as the server."""
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # The guard's shell uses fd 9 itself, so ours goes where no script can name it.
        high = fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, 10)
        os.close(lock)
        try:
            self._acquire(high)
            yield high
        finally:
            os.close(high)

    def _acquire(self, lock: int) -> None:
        # The server of a process that was just killed may still be shutting down.
        deadline = time.monotonic() + STOP_S + 1
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise EmbeddedServerError(
                        f"{self.folder} is in use by another server"
                    ) from None
                time.sleep(POLL_S)
            else:
                return

    def _initialise(self, lock: int) -> None:
        """Make the data folder, under a temporary name until it is complete."""
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if self.family is Family.MARIADB:
            script = install_program(self.program)
            if script is None:
                raise EmbeddedServerError(f"found no mariadb-install-db for {self.program}")
            arguments: list[str | Path] = [
                script,
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--force",  # needed if this machine's name cannot be resolved
                f"--datadir={fresh}",
            ]
        else:
            arguments = [
                self.program,
                *no_defaults(self.program),
                "--initialize-insecure",
                f"--datadir={fresh}",
                "--secure-file-priv=",
            ]
        guard = self._spawn([*arguments, *_user()], lock)
        try:
            code = guard.wait(START_S)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            self.stop()
        if code != 0:
            raise self._failure("could not be initialised")
        fresh.rename(self.folder / "data")

    def _place_socket(self) -> None:
        self._socket = self.folder / "mysqld.sock"
        if len(os.fsencode(self._socket)) > UNIX_SOCKET_BYTES_MAX:
            self._socket_folder = Path(tempfile.mkdtemp(prefix="streamfrom-", dir="/tmp"))
            self._socket = self._socket_folder / "mysqld.sock"
        # After a crash MySQL refuses to start while any process has the pid in its .lock.
        for stale in (self._socket, self._socket.with_name("mysqld.sock.lock")):
            stale.unlink(missing_ok=True)

    def _choose_port(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, self.port))
            except OSError as error:
                raise EmbeddedServerError(
                    f"port {self.port} of {HOST} cannot be used: {error.strerror}"
                ) from error
            self.port = probe.getsockname()[1]

    def _launch(self, lock: int) -> None:
        guard = self._spawn(self._arguments(), lock)
        deadline = time.monotonic() + START_S
        while not (version := self._greeting()):
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.wait(POLL_S)
                raise self._failure("ended at its start")
            if time.monotonic() > deadline:
                raise self._failure(f"did not answer in {START_S:.0f} s")
        self.version = version

    def _arguments(self) -> list[str | Path]:
        files = self.folder / "files"
        files.mkdir(mode=0o700, exist_ok=True)
        arguments: list[str | Path] = [
            self.program,
            *no_defaults(self.program),
            f"--datadir={self.folder / 'data'}",
            f"--port={self.port}",
            f"--bind-address={HOST}",
            f"--socket={self._socket}",
            f"--pid-file={self.folder / 'server.pid'}",
            # Root has no password here, so restrict the files that its SQL may write.
            f"--secure-file-priv={files}",
            "--character-set-server=utf8mb4",  # MariaDB's own default is latin1
            "--innodb-flush-log-at-trx-commit=1",
            "--sync-binlog=1",
        ]
        if self.family is Family.MYSQL:
            arguments += ["--mysqlx=OFF", "--skip-log-bin"]
        return [*arguments, *_user(), *self._options]

    def _spawn(self, arguments: Sequence[str | Path], lock: int) -> "subprocess.Popen[str]":
        """Run *arguments* under a guard, in a new session so that Ctrl-C reaches only us."""
        temporary = self.folder / "tmp"
        temporary.mkdir(mode=0o700, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._guard = subprocess.Popen(  # noqa: S603
                ["/bin/sh", "-c", GUARD, "guard", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={
                    **os.environ,
                    # A starting MariaDB deletes the temporary tables it finds in its folder,
                    # including those of another server in /tmp.
                    "TMPDIR": str(temporary),
                    "GUARD_STOP_S": str(STOP_S),
                    "GUARD_SOCKET_FOLDER": str(self._socket_folder or ""),
                },
                pass_fds=(lock,),
                start_new_session=True,
            )
        assert self._guard.stdout is not None
        self._pid = int(self._guard.stdout.readline())
        return self._guard

    def _greeting(self) -> str:
        """Return the version in the server's greeting packet, or "" while there is none."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(5)
            try:
                probe.connect(self.socket)
                packet = probe.recv(4096)
            except OSError:
                return ""
        # Four bytes of header, protocol 10, the version up to a zero byte; MariaDB before 11
        # puts 5.5.5- first, for old replicas.
        if len(packet) < 5 or packet[4] != 10:
            return ""
        return packet[5:].partition(b"\0")[0].decode("latin-1").removeprefix("5.5.5-")

    def _failure(self, what: str) -> EmbeddedServerError:
        return EmbeddedServerError(
            f"{self.program} {what}; the end of {self.log_path}:\n{self.log_tail()}"
        )

    def _forget(self) -> None:
        if self._guard is not None:
            for pipe in (self._guard.stdin, self._guard.stdout):
                if pipe is not None:
                    pipe.close()
            self._guard.wait()
        self._guard = None
        self._pid = None
        self._socket_folder = None


def _user() -> list[str]:
    # The server runs as root only with this option.
    return ["--user=root"] if os.geteuid() == 0 else []
