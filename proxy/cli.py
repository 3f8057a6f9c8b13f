"""The command line: `streamfrom serve | check | grants | queues | top | demo`.

Exit codes: 0 when all is well, 1 for an error that `check` found or a failure while running,
2 for a wrong command line or configuration.

A command imports its modules when it runs: the proxy's take a second and 60 MB, and neither `queues` nor the parent
of workers needs them.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from streamfrom import __version__
from streamfrom.proxy import log
from streamfrom.proxy.accounts.job_grants import Purpose
from streamfrom.proxy.config.file import Config, ConfigError, LogFormat, LogSettings, load
from streamfrom.proxy.config.fleet_members import AUTO, WORKERS_MAX, worker_count
from streamfrom.proxy.printable import printable
from streamfrom.proxy.process import ServiceManager
from streamfrom.proxy.report import CheckReport
from streamfrom.proxy.workers.supervisor import WorkerFailed, Workers, command_of
from streamfrom.proxy.workers.worker_seat import WorkerSeat, check_ports
from streamfrom.sqlparse_ext.errors import StreamfromError


if TYPE_CHECKING:
    from streamfrom.proxy.config.dsn import Dsn


COMMANDS = ("serve", "check", "grants", "queues", "top", "demo")
ADDRESS_SCHEME = "mysql://"
ADDRESS_DEFAULT = f"{ADDRESS_SCHEME}root@127.0.0.1:15306"
EXIT_FAULT = 1
EXIT_USAGE = 2
WATCH_S = 2.0


@contextmanager
def _ended_by_the_reader() -> Iterator[None]:
    """End quietly when the reader has left, as in `streamfrom check | head -1`."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # On exit Python flushes the rest of the buffer: discard it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def _standard_streams() -> None:
    """Open closed standard streams, as in `streamfrom serve >&-`, and make stdout escape characters that its character set lacks."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # It takes the number of the closed one, which a socket would otherwise get.
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115  # as long as the process
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@_ended_by_the_reader()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    _standard_streams()
    arguments = _parser().parse_args(_command_first(sys.argv[1:] if argv is None else argv))
    seat: WorkerSeat | None = getattr(arguments, "worker_seat", None)
    # These commands print their findings; the log would repeat them in between.
    log.configure(
        verbose=arguments.verbose,
        quiet=arguments.command in {"check", "grants", "queues", "top"},
    )
    try:
        if arguments.command == "demo":
            from streamfrom.proxy.commands.demo import run_demo

            return run_demo(arguments.shards, arguments.port, arguments.data)
        if arguments.command == "queues":
            from streamfrom.proxy.commands.top import watch

            return _ask_proxy(
                arguments.address, lambda to: watch(to, arguments.watch, sys.stdout)
            )
        if arguments.command == "top":
            from streamfrom.proxy.commands.top import top

            return _ask_proxy(arguments.address, lambda to: top(to, arguments.every))
        read = partial(load, arguments.config, os.environ)
        if arguments.command == "check":
            from streamfrom.proxy.commands.check import check

            config = read()
            check_ports(config, worker_count(config.fleet, None, _cores()))
            return uvloop.run(check(config, as_json=arguments.json))
        if arguments.command == "grants":
            return _grants(read(), arguments)
        if seat is not None:
            read = partial(_read_seated, read, seat)
        config = read()
        _configure_log(config.log, seat, verbose=arguments.verbose)
        count = 1 if seat else worker_count(config.fleet, arguments.workers, _cores())
        check_ports(config, count)
        # Removed from the environment because it is for this process, not for its workers.
        manager = ServiceManager(os.environ.pop("NOTIFY_SOCKET", ""))
        if count > 1:
            command = command_of(arguments.config)
            workers = Workers(config, command, count, os.environ)
            return uvloop.run(_serve_workers(workers, manager))
        return uvloop.run(_serve(config, read, seat, manager))
    except ConfigError as error:
        faults = (error, *error.others)
        for each in faults:
            _fail(f"{arguments.config}: {each}", EXIT_USAGE)
        if arguments.command == "check" and arguments.json:
            report = CheckReport()
            for each in faults:
                report.error(each.key or "config", each.problem)
            sys.stdout.write(report.json() + "\n")
        return EXIT_USAGE
    except WorkerFailed as error:
        return error.code  # the worker has printed the error
    except BrokenPipeError:
        raise
    except (OSError, StreamfromError) as error:
        return _fail(str(error), EXIT_FAULT)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="streamfrom",
        description="A message queue inside the MySQL or MariaDB you already run.",
    )
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=("bash", "zsh", "tcsh", "fish", "powershell"),
        help="print shell completion script",
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-v", "--verbose", action="store_true", help="log every decision")
    for place in (parser, common):
        place.add_argument("--version", action="version", version=f"streamfrom {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", parents=[common], help="run the proxy")
    serve.add_argument("--config", type=Path, required=True, metavar="FILE")
    serve.add_argument(
        "--workers",
        type=_workers,
        metavar="N",
        help="processes that share the port, or auto: one for each core",
    )
    serve.add_argument("--worker-seat", type=WorkerSeat.parse, help=argparse.SUPPRESS)
    checking = commands.add_parser(
        "check", parents=[common], help="check config, backends, privileges and message tables"
    )
    checking.add_argument("--config", type=Path, required=True, metavar="FILE")
    checking.add_argument("--json", action="store_true", help="print one JSON document")
    granting = commands.add_parser(
        "grants", parents=[common], help="print the GRANT statements that an account needs"
    )
    granting.add_argument("--config", type=Path, required=True, metavar="FILE")
    granting.add_argument("--for", dest="job", choices=[*map(str, Purpose)], required=True)
    granting.add_argument("--queue", metavar="KEYSPACE.QUEUE", help="default: every queue")
    granting.add_argument("name", metavar="NAME", help="the account's name")
    queues = commands.add_parser(
        "queues", parents=[common], help="show the figures of a running proxy's queues"
    )
    queues.add_argument(
        "--watch",
        type=_seconds,
        nargs="?",
        const=WATCH_S,
        metavar="SECONDS",
        help=f"show rates, again and again; {WATCH_S:g} seconds apart unless said",
    )
    topping = commands.add_parser(
        "top", parents=[common], help="watch queues, streams, shards and members on a terminal"
    )
    topping.add_argument(
        "--every",
        type=_seconds,
        default=WATCH_S,
        metavar="SECONDS",
        help=f"default: {WATCH_S:g}",
    )
    for place in (queues, topping):
        place.add_argument(
            "address",
            nargs="?",
            default=ADDRESS_DEFAULT,
            metavar="mysql://USER:PASSWORD@HOST:PORT",
            help=f"the proxy's; ${{NAME}} is taken from the environment. Default: {ADDRESS_DEFAULT}",
        )
    showing = commands.add_parser(
        "demo", parents=[common], help="run a proxy with its own database servers"
    )
    showing.add_argument("--shards", type=partial(_whole, 1, 64), default=2, metavar="N")
    # The status page needs a port above it.
    showing.add_argument("--port", type=partial(_whole, 1, 65_000), default=15306, metavar="P")
    showing.add_argument("--data", type=Path, metavar="DIR", help="keep the data there")
    return parser


class _PrintCompletion(argparse.Action):
    """Print a completion script for a shell: `shtab.add_argument_to` without loading shtab at each start."""

    def __call__(self, parser: argparse.ArgumentParser, *found: Any) -> None:
        import shtab

        _complete_files(parser, shtab.FILE)
        sys.stdout.write(shtab.complete(parser, found[1]) + "\n")
        parser.exit(0)


def _complete_files(parser: argparse.ArgumentParser, how: object) -> None:
    for action in parser._actions:
        if action.metavar == "FILE":
            action.complete = how  # type: ignore[attr-defined]  # shtab reads this attribute
        if isinstance(action.choices, dict):
            for each in action.choices.values():
                _complete_files(each, how)


def _command_first(argv: Sequence[str]) -> Sequence[str]:
    """Return *argv* with its command before all options, because argparse accepts a command's options only after it.

    The address of a proxy comes next.

    If several words could be the command, as in `--data demo check`, the order is not changed: argparse wants it first.
    """
    match [place for place, word in enumerate(argv) if word in COMMANDS]:
        case [place]:
            rest = [*argv[:place], *argv[place + 1 :]]
            # Otherwise `--watch`, whose number is optional, would take the address as its number.
            rest.sort(key=lambda word: not word.startswith(ADDRESS_SCHEME))
            return [argv[place], *rest]
        case _:
            return argv


def _grants(config: Config, arguments: argparse.Namespace) -> int:
    from streamfrom.proxy.commands.grants import GrantsRefused, print_grants, wanted

    try:
        asked = wanted(config, arguments.job, arguments.name, arguments.queue)
    except GrantsRefused as error:
        return _fail(str(error), EXIT_USAGE)
    return uvloop.run(print_grants(config, asked))


def _ask_proxy(address: str, show: Callable[[Dsn], Coroutine[Any, Any, None]]) -> int:
    from streamfrom.proxy.commands.top import parse_address

    try:
        where = parse_address(address, os.environ)
    except ConfigError as error:
        return _fail(str(error), EXIT_USAGE)
    uvloop.run(show(where))
    return 0


def _seconds(text: str) -> float:
    """Return the pause given as *text*. Raises ArgumentTypeError."""
    with suppress(ValueError):
        if (seconds := float(text)) > 0 and isfinite(seconds):
            return seconds
    raise argparse.ArgumentTypeError("expected a number of seconds > 0")


def _workers(text: str) -> int:
    """Return the number of workers given as *text*. Raises ArgumentTypeError."""
    return AUTO if text == "auto" else _whole(1, WORKERS_MAX, text, ", or auto")


def _whole(least: int, most: int, text: str, other: str = "") -> int:
    if text.isascii() and text.isdigit() and least <= int(text) <= most:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected {least} to {most}{other}")


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _configure_log(settings: LogSettings, seat: WorkerSeat | None, *, verbose: bool) -> None:
    """Configure logging from *settings*; a worker logs at its parent's level."""
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    log.configure(
        level=seat.log_level if seat else logging.DEBUG if verbose else level,
        worker=seat.number if seat else None,
        as_json=None
        if settings.format is LogFormat.AUTO
        else settings.format is LogFormat.JSON,
    )


def _read_seated(read: Callable[[], Config], seat: WorkerSeat) -> Config:
    return seat.seated(read())


async def _serve(
    config: Config,
    read_again: Callable[[], Config],
    seat: WorkerSeat | None,
    manager: ServiceManager,
) -> int:
    from streamfrom.proxy.app.application import run

    stop, hangup, hurry = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def end() -> None:
        """Stop; on the second call, without waiting for clients."""
        manager.stopping()
        (hurry if stop.is_set() else stop).set()

    # A service manager sends SIGTERM to a worker as well as to its parent, which forwards it.
    _on_signals(stop.set if seat is not None else end, hangup.set)
    await run(config, stop, hangup, hurry, read_again, seat, manager)
    return 0


async def _serve_workers(workers: Workers, manager: ServiceManager) -> int:
    stop = asyncio.Event()

    def end() -> None:
        manager.stopping()
        if stop.is_set():
            workers.hurry()
        stop.set()

    def hangup() -> None:
        """Forward the signal. Workers reread their files on their own and log the result."""
        manager.reloading()
        workers.hangup()
        manager.ready()

    _on_signals(end, hangup)
    return await workers.run(stop, manager.ready)


def _on_signals(end: Callable[[], None], hangup: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number, act in ((signal.SIGINT, end), (signal.SIGTERM, end), (signal.SIGHUP, hangup)):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, act)


def _fail(sentence: str, code: int) -> int:
    # It may end with several lines of a server's log.
    shown = "\n".join(map(printable, sentence.split("\n")))
    sys.stderr.write(f"streamfrom: {shown}\n")
    return code
