"""`python -m bench [name …]`: run workloads and print one table; exit 1 on a failure.

A failed audit is a failure. A goal missed on a noisy machine is only shown.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import pymysql

from bench.fleet import LabError, raise_file_limit
from bench.lab import Lab
from bench.machine import Disturbance, facts
from bench.plan import Plan
from bench.report import Figure, table
from bench.workloads import ON_REQUEST, WORKLOADS
from streamfrom.proxy.embedded.servers import EmbeddedServerError, Family


ALL: Mapping[str, Callable[[Plan], Iterable[Figure]]] = {**WORKLOADS, **ON_REQUEST}
NOISE = 5.0  # percent of all processors' time; less than this hardly moves a ratio
FAILURES = (EmbeddedServerError, LabError, OSError, pymysql.MySQLError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the workloads on the command line; return the exit code."""
    options = _options(arguments)
    raise_file_limit()
    # So that SIGTERM also stops the servers and removes their folder.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    figures: list[Figure] = []
    failed: dict[str, str] = {}
    others: dict[str, float] = {}
    family = Family(options.server) if options.server else None
    try:
        with Lab(family) as lab:
            _say(f"{lab.server.family} {lab.server.version}, {facts()}")
            plan = Plan(lab, options.quick, _say)
            names = list(options.names or WORKLOADS)
            for number, name in enumerate(names, 1):
                start = time.monotonic()
                disturbance = Disturbance(lab.server_pids)
                _say(f"{name}, {number} of {len(names)}")
                try:
                    # One at a time, so that a failure keeps the figures measured before it.
                    figures.extend(ALL[name](plan))
                except FAILURES as error:
                    failed[name] = f"{type(error).__name__}: {error}"
                    _say(f"  {failed[name]}\n  the proxy's log ends with:\n{lab.proxy_log()}")
                others[name] = round(disturbance.percent(), 1)
                _say(f"  {time.monotonic() - start:.0f} s")
    except KeyboardInterrupt:
        _say("bench: interrupted; this was measured:")
        failed["the run"] = "interrupted"
    except (LabError, EmbeddedServerError) as error:
        _say(f"bench: {error}")
        return 1
    if figures:
        print(table(figures))
    disturbed = [f"{name} {share:.0f} %" for name, share in others.items() if share >= NOISE]
    if disturbed:
        print(f"Other work kept the processors busy meanwhile: {', '.join(disturbed)}.")
    for name, problem in failed.items():
        print(f"{name} failed: {problem.splitlines()[0]}")
    return 1 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measure streamfrom's promises.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help=f"which: {', '.join(ALL)}; none: all but {', '.join(ON_REQUEST)}",
    )
    parser.add_argument("--quick", action="store_true", help="shorter, one pair of runs")
    parser.add_argument("--server", choices=[family.value for family in Family])
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in ALL]
    if unknown:
        parser.error(f"no workload {', '.join(unknown)}; there are {', '.join(ALL)}")
    return options


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
