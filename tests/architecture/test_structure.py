"""The rules that no linter knows: tests beside modules, privacy, one reader of the environment."""

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.cases import sections


ROOT = Path(__file__).parents[2]
PACKAGES = ("proxy", "engine", "sqlparse_ext", "spark")
MODULES_MAX = 20  # of one folder
ENVIRONMENT_READERS = {
    "proxy",
    "proxy.cli",
    "proxy.commands.demo",
    "proxy.embedded.servers",
    "proxy.log",
    "spark.endpoint",
    "spark.session",
    "spark.source.batch",
}
"""Who may touch os.environ: the package that sets how gRPC logs before it is imported, the command line, what starts
programs of its own, what colours lines, and what sets a switch that workers of Spark have nowhere else."""

SAME_FILE_NAME = {
    "cli.py": "each program has one",
    "errors.py": "each package has the root of its own errors",
    "session.py": "docs/spark/jdbc.md promises streamfrom.spark.session; the other is a client's",
}
"""File names that stand in several folders, and why; a new one gets a name of its own."""

PYMYSQL_PRIVATES = {
    "_data",
    "_execute_command",
    "_force_close",
    "_next_seq_id",
    "_read_ok_packet",
    "_read_packet",
    "_read_query_result",
    "_result",
    "_rfile",
    "_sock",
}
"""PyMySQL has no public way to send a command byte by byte, which these tests are about."""

ON_VIRTUAL_TIME = {"engine", "sim"}
"""Folders of tests whose conftest.py runs each coroutine on a virtual loop."""

PRIVATE_OF_ANOTHER = re.compile(r"(?<!\bself)(?<!\bcls)\s*\._[^_]")
"""What a text has that may hold `x._y`: most have none, and need not be parsed."""

DOCUMENTED = {"_asdict", "_exit", "_fields", "_make", "_replace"}
"""Names of Python's own library that are public in spite of their underscore."""


def sources() -> dict[str, Path]:
    """Return every module of the product by its dotted name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }


SOURCES = sources()
TEXTS = {module: path.read_text() for module, path in SOURCES.items()}
IMPORT = re.compile(r"^ *from streamfrom\.\S+ import (\([^)]*\)|.*)$", re.MULTILINE)
CLASS = re.compile(r"^ *class (\w+)[(:]", re.MULTILINE)


def partner_of(module: str) -> Path:
    *folders, name = module.split(".")
    return ROOT.joinpath("tests", *folders, f"test_{name}.py")


def relative(paths: Iterable[Path]) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in paths)


def test_every_module_has_its_test_file():
    wanted = {
        partner_of(module)
        for module, path in SOURCES.items()
        if path.name not in {"__init__.py", "__main__.py"}
    }
    assert not relative(path for path in wanted if not path.exists())


def test_no_folder_has_more_modules_than_one_looks_through():
    modules = Counter(
        path.parent
        for path in SOURCES.values()
        if path.name not in {"__init__.py", "__main__.py"}
    )
    assert not relative(folder for folder, count in modules.items() if count > MODULES_MAX)


def test_every_test_file_of_a_package_starts_with_its_modules_name():
    """A module may have more: test_store.py, and test_store_db.py for what needs a server."""
    wanted = defaultdict(list)
    for partner in map(partner_of, SOURCES):
        wanted[partner.parent].append(f"{partner.stem}_")
    strays = {
        path
        for package in PACKAGES
        for path in (ROOT / "tests" / package).rglob("test_*.py")
        if not f"{path.stem}_".startswith(tuple(wanted[path.parent]))
    }
    assert not relative(strays)


def test_no_module_takes_what_another_keeps_private():
    assert any(map(IMPORT.search, TEXTS.values()))
    assert not [
        f"{module}: {names}"
        for module, text in TEXTS.items()
        for names in IMPORT.findall(text)
        if re.search(r"(?<!as )\b_", names)
    ]


def repeated(names: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that stand in several places, each with its places."""
    places = defaultdict(list)
    for name, place in names:
        places[name].append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_a_class_name_stands_in_one_place():
    classes = [
        (name.lstrip("_").casefold(), f"{module}.{name}")
        for module, text in TEXTS.items()
        for name in CLASS.findall(text)
    ]
    assert len(classes) > len(SOURCES)
    assert not repeated(classes)


def test_a_file_name_needs_no_folder_to_be_told_apart():
    files = (
        (path.name, module)
        for module, path in SOURCES.items()
        if path.name not in {"__init__.py", "__main__.py"}
    )
    assert repeated(files).keys() == SAME_FILE_NAME.keys()


def privates_of_others(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Yield each `x._y` that is neither of self nor of a library."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
            and node.attr not in PYMYSQL_PRIVATES | DOCUMENTED
            and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
        ):
            yield node


def test_tests_ask_through_public_doors():
    taken = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if PRIVATE_OF_ANOTHER.search(text := path.read_text())
        for node in privates_of_others(ast.parse(text))
    ]
    assert not taken


def test_clients_import_nothing_of_the_product():
    product = re.compile(r"^ *(?:from|import) +streamfrom\b", re.MULTILINE)
    assert not [p for p in (ROOT / "clients").rglob("*.py") if product.search(p.read_text())]


def test_only_few_modules_read_the_environment():
    reads = {
        module for module, text in TEXTS.items() if re.search(r"\bos\.(environ|getenv)", text)
    }
    assert reads == ENVIRONMENT_READERS


def sleeps(node: ast.AST, *, in_loop: bool = False) -> Iterator[tuple[str, ast.Call, bool]]:
    """Yield each x.sleep() in *node*: x, the call, and whether it stands in a loop."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sleep")):
            yield name, node, in_loop
        case ast.While() | ast.For() | ast.AsyncFor():
            in_loop = True
        case _:
            pass
    for inner in ast.iter_child_nodes(node):
        yield from sleeps(inner, in_loop=in_loop)


def literal_s(call: ast.Call) -> float | None:
    """Return how long *call* sleeps, or None where a name says it."""
    match call.args[0]:
        case ast.Constant(value=int() | float() as seconds):
            return seconds
        case _:
            return None


def test_every_section_of_cases_has_its_test():
    for path in (ROOT / "tests").rglob("test_*.txt"):
        code = path.with_suffix(".py").read_text()
        assert not [name for name in sections(path) if f"def {name}(" not in code], path


def test_no_test_sleeps_but_to_look_again():
    """A pause that is itself the case has a name; a second and more pass on the virtual clock alone."""
    strays = []
    for path in (ROOT / "tests").rglob("*.py"):
        if "sleep(" not in (text := path.read_text()):
            continue
        is_virtual = (
            "virtual_loop" in text or path.parts[len(ROOT.parts) + 1] in ON_VIRTUAL_TIME
        )
        for module, call, looks_again in sleeps(ast.parse(text)):
            seconds = literal_s(call) if module in {"time", "asyncio"} else None
            if seconds is None or (module == "asyncio" and is_virtual):
                continue
            if seconds >= 1 or (module == "time" and not looks_again):
                strays.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert not strays


def test_coverage_is_held_for_every_module_that_sees_no_socket():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    (pure,) = [
        contract["source_modules"]
        for contract in tools["importlinter"]["contracts"]
        if contract["name"].startswith("sans-I/O")
    ]
    covered = tools["coverage"]["run"]["source"]
    assert not [
        name for name in pure if not any(f"{name}.".startswith(f"{each}.") for each in covered)
    ]


LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


def is_constant(event: ast.expr) -> bool:
    """Return whether an event is a text without a place for a value, or one of two such texts."""
    if isinstance(event, ast.IfExp):
        return is_constant(event.body) and is_constant(event.orelse)
    return isinstance(event, ast.Constant) and "%" not in str(event.value)


def log_calls(tree: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """Yield the line and the event of each call of a logger.

    Not those of a method that is such a call itself, as `SparingLog.warning`: its callers name the event.
    """
    for node in ast.iter_child_nodes(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name in LEVELS
            and [each.arg for each in node.args.args][1:2] == ["event"]
        ):
            continue
        yield from log_calls(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func.value).rpartition(".")[2].strip("_")
            if node.func.attr in LEVELS and name == "log":
                yield node.lineno, node.args[node.func.attr == "log"]


def test_every_event_of_a_log_is_a_constant_so_that_lines_can_be_counted():
    assert not [
        f"{module}:{line}"
        for module, text in TEXTS.items()
        if module.startswith(("engine.", "proxy.")) and "log." in text
        for line, event in log_calls(ast.parse(text))
        if not is_constant(event)
    ]
    for call in ("log.info(f'{shard} is up')", "log.info('%s', x)", "self._log.log(level, x)"):
        ((_, event),) = log_calls(ast.parse(call))
        assert not is_constant(event)
