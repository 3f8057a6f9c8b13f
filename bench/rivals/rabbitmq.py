"""RabbitMQ as Debian packages it: a broker of our own on loopback, and its clients' work."""

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import messages
from bench.clients import Received
from bench.fleet import Signals, Work
from bench.lab import Endpoint
from bench.processes import HOST, LabError, free_port, process, tail
from bench.rivals.amqp import AmqpConnection, Broken


PROGRAMS: Final = Path("/usr/lib/rabbitmq/lib")
START_S: Final = 60.0
LOAD_AT_ONCE: Final = 500


def program() -> Path:
    """Return the broker's program.

    Raises:
        LabError: it is not installed.
    """
    found = sorted(PROGRAMS.glob("rabbitmq_server-*/sbin/rabbitmq-server"))
    if not found:
        raise LabError("RabbitMQ is not installed: apt-get install rabbitmq-server")
    return found[-1]


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[Endpoint]:
    """Run a broker with its data in *folder*; its epmd ends with it."""
    folder.mkdir(parents=True)
    (folder / "plugins").write_text("[].\n")
    (folder / "advanced.config").write_text(
        "[{kernel, [{inet_dist_use_interface, {127,0,0,1}}]}].\n"
    )
    ports = {name: str(free_port()) for name in ("node", "dist", "epmd")}
    settings = {
        "HOME": str(folder),
        "ERL_EPMD_PORT": ports["epmd"],
        "ERL_EPMD_ADDRESS": HOST,
        "RABBITMQ_NODENAME": "bench@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_NODE_PORT": ports["node"],
        "RABBITMQ_DIST_PORT": ports["dist"],
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
    }
    log = folder / "broker.log"
    command = ["env", *(f"{name}={value}" for name, value in settings.items()), str(program())]
    try:
        with process(command, log) as running:
            deadline = time.monotonic() + START_S
            while "Server startup complete" not in log.read_text(errors="replace"):
                if running.poll() is not None or time.monotonic() > deadline:
                    raise LabError(f"RabbitMQ does not start; it said:{tail(log)}")
                time.sleep(0.1)
            yield Endpoint(int(ports["node"]), _virtual_machine(running.pid))
    finally:
        subprocess.run(
            ["epmd", "-port", ports["epmd"], "-kill"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )


def _virtual_machine(parent: int) -> int:
    """Return the process of Erlang's virtual machine at or below *parent*, a shell script."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = entry.read_text().rpartition(")")
            pid = int(entry.parent.name)
            if name.endswith("(beam.smp") and parent in (pid, int(rest.split()[1])):
                return pid
    raise LabError("RabbitMQ's virtual machine was not found")


def load(port: int, queue: str, count: int) -> None:
    """Make a queue with *count* messages, ids from 1."""

    async def work() -> None:
        connection = await AmqpConnection.open(port)
        await connection.declare(queue)
        await connection.confirm()
        for first in range(1, count + 1, LOAD_AT_ONCE):
            ids = range(first, min(first + LOAD_AT_ONCE, count + 1))
            await connection.publish(queue, [messages.body(id_).encode() for id_ in ids])
        connection.close()

    asyncio.run(work())


def delete(port: int, queue: str) -> None:
    """Remove a queue."""

    async def work() -> None:
        connection = await AmqpConnection.open(port)
        await connection.delete(queue)
        connection.close()

    asyncio.run(work())


def consumers(port: int, queue: str, *, count: int, ack_batch: int, prefetch: int) -> Work:
    """Return *count* consumers that acknowledge each message, or every *ack_batch* of them at once."""

    async def work(signals: Signals) -> Received:
        received = Received()
        opened = [await AmqpConnection.open(port) for _ in range(count)]
        await signals.start()

        async def consume(connection: AmqpConnection) -> None:
            await connection.consume(queue, prefetch)
            unacked = 0
            while True:
                for arrived_ns, tag, body in await connection.batches():
                    received.add([_id(body)], arrived_ns)
                    unacked += 1
                    if unacked == ack_batch:
                        connection.ack(tag, multiple=ack_batch > 1)
                        received.note_ack(unacked)
                        signals.count(unacked)
                        unacked = 0

        await signals.until_stopped(*map(consume, opened))
        for one in opened:
            await one.settle(queue)
            one.close()
        return received

    return work


def worker(port: int, queue: str, work_s: float, takes: int | None, prefetch: int) -> Work:
    """Return one consumer that works *work_s* on each message, and drops its connection after *takes* of them."""

    async def work(signals: Signals) -> Received:
        received = Received()
        connection = await AmqpConnection.open(port)
        await signals.start()
        await connection.consume(queue, prefetch)

        async def consume() -> None:
            while True:
                for arrived_ns, tag, body in await connection.batches():
                    received.add([_id(body)], arrived_ns)
                    if len(received.ids) == takes:
                        connection.close()
                        return
                    await asyncio.sleep(work_s)
                    connection.ack(tag)
                    received.note_ack(1)
                    signals.count(1)

        await signals.until_stopped(consume())
        with contextlib.suppress(Broken):
            await connection.settle(queue)
        connection.close()
        return received

    return work


def producer(port: int, queue: str, *, per_second: int, seconds: float) -> Work:
    """Return an open-loop producer of confirmed messages, ids from 1."""

    async def work(signals: Signals) -> int:
        connection = await AmqpConnection.open(port)
        await connection.confirm()
        start_ns = await signals.start()
        count, sent = int(per_second * seconds), 0
        while sent < count:
            due = min(count, (time.time_ns() - start_ns) * per_second // messages.NS_PER_S)
            for id_ in range(sent + 1, due + 1):
                await connection.publish(queue, [messages.body(id_).encode()])
            sent = max(sent, due)
            await asyncio.sleep(1 / per_second)
        connection.close()
        return count

    return work


def _id(body: bytes) -> int:
    # As messages.BODY begins.
    return int(body[body.index(b":") + 1 : body.index(b",")])
