"""A Python for Spark that connects back to the JVM before it imports anything.

Spark gives a streaming source's Python process ten seconds from its start to its connection, a constant, in which PySpark is
imported. A busy machine needs longer. `make_program` writes a program to name in PYSPARK_PYTHON; for such a
process it connects, authenticates, and then runs the module on that connection. All other processes start unchanged.
"""

import os
import runpy
import socket
import sys
from pathlib import Path


MODULES = ("pyspark.sql.streaming.python_streaming_source_runner",)
PORT, SECRET = "PYTHON_WORKER_FACTORY_PORT", "PYTHON_WORKER_FACTORY_SECRET"


def make_program(folder: Path) -> Path:
    """Write the program into *folder* and return its path."""
    program = folder / "python"
    # Isolated and without site: a tenth of the time that a Python takes to begin.
    program.write_text(f"#!{sys.executable} -IS\n{Path(__file__).read_text()}")
    program.chmod(0o755)
    return program


def connected(port: int, secret: bytes) -> socket.socket:
    """Return a connection to the JVM on which *secret* has been accepted."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(len(secret).to_bytes(4, "big") + secret)
    answer = b""
    while len(answer) < 6 and (part := sock.recv(6 - len(answer))):
        answer += part
    if answer != b"\0\0\0\2ok":
        raise SystemExit(f"the JVM answers {answer!r}")
    sock.set_inheritable(True)
    return sock


def run_module(module: str, number: int) -> None:
    """Run PySpark's *module* on the connection that is open as *number*."""
    import pyspark.util
    import pyspark.worker_util

    def taken(*_: object) -> tuple[object, socket.socket]:
        sock = socket.socket(fileno=number)
        return sock.makefile("rwb", 65536), sock

    for module_of_it in (pyspark.util, pyspark.worker_util):
        setattr(module_of_it, "local_connect_and_auth", taken)  # noqa: B010
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[0] == "--connected":
        run_module(arguments[1], int(arguments[2]))
        return
    if arguments[-1] in MODULES:
        sock = connected(int(os.environ[PORT]), os.environ[SECRET].encode())
        arguments = [sys.argv[0], "--connected", arguments[-1], str(sock.detach())]
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main()
