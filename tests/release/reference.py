"""The tables of the reference that the code has: `./dev reference` writes them into their pages, and a test compares.

A table stands between `<!-- reference: NAME -->` and `<!-- end -->`; whatever is between is replaced.
The links of the packages come from the `repo_url` of `zensical.toml`.
"""

import inspect
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from streamfrom.engine import errors as engine_errors
from streamfrom.engine.messaging.order import group_watch
from streamfrom.engine.messaging.table import message_ids
from streamfrom.engine.messaging.table.setting_keys import KEYS
from streamfrom.engine.messaging.upkeep import dead_letter_table, partitions
from streamfrom.proxy import errors as proxy_errors, grpc_port
from streamfrom.proxy.admin import history, queue_api, queue_messages
from streamfrom.proxy.admin.metrics import MetricsPage
from streamfrom.proxy.config import file
from streamfrom.proxy.execution import retry_rules, user_variables
from streamfrom.proxy.sql import prepared_statements, text_statements
from streamfrom.proxy.sql.queues import stream_statements
from streamfrom.proxy.sql.scatter import two_stage
from streamfrom.proxy.status import status_rows
from streamfrom.proxy.status.queue_figures import FIGURES
from streamfrom.proxy.status.status_rows import MemberStatus
from streamfrom.proxy.vtgate import message_service
from streamfrom.sqlparse_ext.errors import StreamfromError


ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
PACKAGES: Final = (ROOT / "pyproject.toml", ROOT / "clients/python/pyproject.toml")
_BLOCK: Final = re.compile(r"(<!-- reference: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_FAMILY: Final = re.compile(r"# HELP (\S+) (.*)")

_LIMITS: Final = (
    ("`STREAM … WHERE key IN (…)`", "values", stream_statements.KEYS_MAX),
    ("`STREAM … WAIT`", "seconds", int(stream_statements.WAIT_MAX_S)),
    ("`INSERT … SELECT` whose rows are read first", "rows", two_stage.INSERT_ROWS_MAX),
    ("the same, and `merge_memory`", "bytes", two_stage.INSERT_BYTES_MAX),
    ("parts that are answered first, all together", "rows", two_stage.PARTS_ROWS_MAX),
    ("the same, and `merge_memory`", "bytes", two_stage.PARTS_BYTES_MAX),
    ("prepared statements of a session, by the protocol", "statements", prepared_statements.STATEMENTS_MAX),
    ("the same, by `PREPARE`", "statements", text_statements.STATEMENTS_MAX),
    ("a user variable that follows its session to another shard", "bytes", user_variables.VALUE_BYTES_MAX),
    ("`max_allowed_packet`", "bytes", file.PACKET_BYTES_MAX),
    ("tries of an ack that deadlocks", "tries", retry_rules.DEADLOCKS_MAX),
    ("members of a fleet, workers included", "processes", message_ids.MEMBERS_MAX),
    ("messages that are known to wait for their group, for each shard", "messages", group_watch.WATCHED_MAX),
    ("partitions of a queue", "partitions", partitions.PARTITIONS_MAX),
    ("messages that `REQUEUE` moves in a transaction", "messages", dead_letter_table.REVIVED_AT_ONCE),
    ("a text in a status table; the rest is cut", "characters", status_rows.TEXT_MAX),
    ("queues with charts on the status page", "queues", history.QUEUES_MAX),
    ("a value that it shows whole", "bytes", queue_messages.SHOWN_MAX),
    ("messages that it acts on by selection", "messages", queue_api.SELECTED_MAX),
    ("gRPC connections", "connections", grpc_port.CONNECTIONS_MAX),
    ("the same, of one address", "connections", grpc_port.PER_ADDRESS_MAX),
    ("a request by gRPC", "bytes", message_service.REQUEST_BYTES_MAX),
)  # fmt: skip


def limits() -> str:
    """Return the limits that no setting changes."""
    rows = (f"| {what} | {_amount(value, unit)} |\n" for what, unit, value in _LIMITS)
    return "| limit of | at most |\n|---|---|\n" + "".join(rows)


def _amount(value: int, unit: str) -> str:
    if unit == "bytes":
        for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
            if value % size == 0:
                return f"{value // size} {name}"
    if unit == "seconds" and value % 86_400 == 0:
        return f"{value // 86_400} days"
    return f"{value:,} {unit}"


def figures() -> str:
    """Return the columns of `streamfrom.queues`, with the metrics that report the same."""
    lines = [
        "| column | meaning | metric |",
        "|---|---|---|",
        "| `keyspace`, `queue` | Which table | |",
    ]
    names: list[str] = []
    for figure in FIGURES:
        names.append(f"`{figure.name}`")
        if figure.help:  # half of two columns is described with the other
            metric = f"`{figure.metric}`" if figure.metric else ""
            lines.append(f"| {', '.join(names)} | {figure.help.rstrip('.')} | {metric} |")
            names.clear()
    lines += [
        "| `error` | Why the table cannot be used; everything else is `NULL` then | |",
        "| `unanswered` | Which members' figures are missing, and why; `NULL` if all have answered | |",
    ]
    return "\n".join(lines) + "\n"


def metrics() -> str:
    """Return the metrics that are not of queues, with what the proxy itself says of them."""
    member = MemberStatus("", "", 0, 0, 0, 0, is_stopping=False, certificate_expires_s=0)
    text = MetricsPage([], member, 0).text().decode()
    of_queues = {f"streamfrom_{figure.metric}" for figure in FIGURES}
    rows = (
        f"| `{name}` | {meaning.rstrip('.')} |\n"
        for name, meaning in _FAMILY.findall(text)
        if name not in of_queues
    )
    return "| metric | meaning |\n|---|---|\n" + "".join(rows)


def settings() -> str:
    """Return the keys of a message table's comment."""
    rows = (f"| `{key}` | {text} |\n" for key, text in KEYS.items())
    return "| key | unit | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


class _Gap(str):
    """Stands for what varies in a sentence, however the sentence puts it in."""

    def __new__(cls) -> Self:
        return super().__new__(cls, "…")

    def __format__(self, spec: str) -> str:
        return "…"

    def encode(self, *_: object) -> Self:  # type: ignore[override]
        return self

    def decode(self, *_: object) -> Self:
        return self

    def __getitem__(self, _: object) -> Self:
        return self


def _kinds(root: type[StreamfromError]) -> Iterator[type[StreamfromError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)


def _sample(kind: type[StreamfromError]) -> StreamfromError:
    """Return an error of *kind* with gaps for all that varies."""
    if "sentence" in vars(kind):
        return kind()
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    if parameters[0].kind is parameters[0].VAR_POSITIONAL:
        return kind(_Gap())
    given = {
        each.name: False if each.annotation == "bool" else _Gap()
        for each in parameters
        if each.default in {each.empty, ""}
    }
    return kind(**given)


_ERRORS: Final = (
    "streamfrom.sqlparse_ext.errors",
    "streamfrom.engine.errors",
    "streamfrom.proxy.errors",
)
# Errors whose words are a shard's, or that reach a client as another error.
_NO_ROW: Final = (
    StreamfromError,
    engine_errors.EngineError,
    engine_errors.KeyspaceError,
    engine_errors.VindexError,
    engine_errors.VschemaError,
    proxy_errors.ProxyError,
    proxy_errors.CutTypes,
    proxy_errors.ValueOfOtherType,
)
_NO_FAMILY: Final = (engine_errors.StoreError, proxy_errors.BackendError)


def errors() -> str:
    """Return the errors of streamfrom itself, with what to do."""
    rows: set[tuple[int, str, str, str]] = set()
    for kind in _kinds(StreamfromError):
        if (
            not kind.__module__.startswith(_ERRORS)
            or kind in _NO_ROW
            or issubclass(kind, _NO_FAMILY)
        ):
            continue
        error = _sample(kind)
        words = str(error)
        if words == "…":  # every place that raises it has words of its own
            words = f"*{(inspect.getdoc(kind) or '').partition('.')[0]}*"
        rows.add((*error.wire_code(), words, kind.remedy))
    lines = (
        f"| {code}/{state} | {words} | {remedy}{' ' * bool(remedy)}|\n"
        for code, state, words, remedy in sorted(rows)
    )
    return "| code/SQLSTATE | error | what to do |\n|---|---|---|\n" + "".join(lines)


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "errors": errors,
    "figures": figures,
    "limits": limits,
    "metrics": metrics,
    "settings": settings,
}


def made(page: str) -> str:
    """Return the text of a page with the tables of the code in place of those that it has."""
    return _BLOCK.sub(lambda found: found[1] + TABLES[found[2]]() + found[4], page)


def repository() -> str:
    """Return the address of the repository, "" while it has none."""
    return str(
        tomllib.loads((ROOT / "zensical.toml").read_text())["project"].get("repo_url", "")
    )


def with_links(pyproject: str, address: str) -> str:
    """Return the text of a pyproject.toml with the links to the repository at *address*; "" is none."""
    bare = re.sub(r"\[project\.urls\]\n(?:.+\n)+\n", "", pyproject)
    links = (
        f'[project.urls]\nSource = "{address}"\nIssues = "{address}/issues"\n'
        f'Changelog = "{address}/blob/main/docs/changelog.md"\n\n'
    )
    place = "[project.optional-dependencies]\n"
    return bare.replace(place, links * bool(address) + place)


def main() -> None:
    """Write the tables into all pages, and the links into the packages."""
    made_of: dict[Path, str] = {
        path: made(path.read_text()) for path in sorted(DOCS.rglob("*.md"))
    }
    made_of |= {path: with_links(path.read_text(), repository()) for path in PACKAGES}
    for path, text in made_of.items():
        if text != path.read_text():
            path.write_text(text)


if __name__ == "__main__":
    main()
