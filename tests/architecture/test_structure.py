"""The rules that no linter knows: tests beside modules, privacy, one reader of the environment."""

import ast
import functools
from collections.abc import Iterable
from pathlib import Path


ROOT = Path(__file__).parents[2]
PACKAGES = ("proxy", "engine", "sqlparse_ext", "spark")

ENVIRONMENT_READERS = {
    "proxy.cli",
    "proxy.demo",
    "proxy.embedded.servers",
    "proxy.embedded.program",
    "spark.passwords",
    "spark.session",
    "spark.source.options",
    "spark.source.refused_stream",
}
"""Who may touch os.environ: the command line, what starts programs of its own, a source that has no command line, and what sets a
switch that workers of Spark have nowhere else."""


def sources() -> dict[str, Path]:
    """Return every module of the product by its dotted name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }


SOURCES = sources()


@functools.cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(SOURCES[module].read_text())


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


def test_every_test_file_of_a_package_starts_with_its_modules_name():
    """A module may have more: test_store.py, and test_store_db.py for what needs a server."""
    wanted = {partner_of(module).with_suffix("") for module in SOURCES}
    strays = {
        path
        for package in PACKAGES
        for path in (ROOT / "tests" / package).rglob("test_*.py")
        if not any(
            path.parent == partner.parent and f"{path.stem}_".startswith(f"{partner.name}_")
            for partner in wanted
        )
    }
    assert not relative(strays)


def test_no_module_takes_what_another_keeps_private():
    taken = [
        f"{module}:{node.lineno}: {alias.name} of {node.module}"
        for module in SOURCES
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if node.module.split(".")[0] in PACKAGES and alias.name.startswith("_")
    ]
    assert not taken


def test_only_few_modules_read_the_environment():
    reads = [
        f"{module}:{node.lineno}: os.{node.attr}"
        for module in SOURCES
        if module not in ENVIRONMENT_READERS
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr in {"environ", "environb", "getenv"}
    ]
    assert not reads


def test_no_test_sleeps_for_a_second_of_real_time():
    sleeps = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "sleep"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "time"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, int | float)
        and node.args[0].value >= 1
    ]
    assert not sleeps
