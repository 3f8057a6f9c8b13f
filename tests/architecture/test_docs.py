"""The documents speak of what exists: modules, their names, files, `./dev` commands; and their site has no broken link."""

import ast
import contextlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from streamfrom import __version__


ROOT = Path(__file__).parents[2]
PACKAGES = ("proxy", "engine", "sqlparse_ext", "spark")
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", ".github/*.md", "tests/README.md")
    for path in ROOT.glob(pattern)
)
WORDS_MAX = 60_000
ROOTS = "|".join((*PACKAGES, "tests", "docs", "bench", "examples"))
DOTTED = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_][A-Za-z0-9_]*)+)(?:\(\))?`")
PATH = re.compile(rf"`((?:{ROOTS})/[A-Za-z0-9_./-]*)`")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
DEV = re.compile(r"\./dev ([a-z]+)")


def mentions(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the document, from the root, and what it mentions."""
    for document in DOCUMENTS:
        for match in pattern.finditer(document.read_text()):
            yield str(document.relative_to(ROOT)), match[1]


def exists(name: str) -> bool:
    """Say whether *name* is a module, a name in one, or what instances of a class there have."""
    if name.startswith("spark.") and find_spec("pyspark") is None:
        return True
    owner, _, last = name.rpartition(".")
    try:
        pkgutil.resolve_name(f"streamfrom.{name}")
    except AttributeError:
        with contextlib.suppress(
            AttributeError, TypeError
        ):  # TypeError: generated, without a source
            found = pkgutil.resolve_name(f"streamfrom.{owner}")
            if isinstance(found, type):
                set_in = re.search(rf"\bself\.{last}\b.*=", inspect.getsource(found))
                return bool(set_in) or last in found.__annotations__
        return False
    return True


def test_every_module_and_name_mentioned_exists():
    assert not [(doc, name) for doc, name in mentions(DOTTED) if not exists(name)]


def test_every_module_and_name_in_a_docstring_exists():
    """But for the pipeline's, where `spark` is a session of Spark as well."""
    sources = (path for package in PACKAGES[:3] for path in (ROOT / package).rglob("*.py"))
    found = ((path, name) for path in sources for name in DOTTED.findall(path.read_text()))
    assert not [(str(path.relative_to(ROOT)), name) for path, name in found if not exists(name)]


def test_every_path_mentioned_exists():
    assert not [(doc, path) for doc, path in mentions(PATH) if not (ROOT / path).exists()]


def test_every_link_to_a_file_leads_to_one():
    assert not [
        (doc, target)
        for doc, target in mentions(LINK)
        if "://" not in target and not (ROOT / doc).parent.joinpath(target).exists()
    ]


def test_the_list_of_examples_has_all_of_them():
    listed = set(re.findall(r"`([\w./-]+?)/?`", (ROOT / "examples/README.md").read_text()))
    there = {path.name for path in (ROOT / "examples").iterdir()} - {"README.md", "__pycache__"}
    assert there - listed == set()


def test_every_dev_command_mentioned_is_one():
    commands = re.findall(r"^  ([a-z]+)\)$", (ROOT / "dev").read_text(), re.MULTILINE)
    assert not [(doc, name) for doc, name in mentions(DEV) if name not in commands]


def test_the_check_knows_a_name_that_is_not_there():
    assert exists("proxy.config.file.load")
    assert exists("proxy.config.file.Server.host")
    assert exists("proxy.embedded.servers.EmbeddedServer.log_path")
    assert not exists("proxy.config.file.nothing")
    assert not exists("proxy.config.file.Server.nothing")
    assert not exists("proxy.nothing")


TRACE = re.compile(r"^ ?\d+ ([a-z_]+(?:\.[A-Za-z_]+)+) ", re.MULTILINE)
TEXTS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text()
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
}


def named_modules(tail: str) -> list[str]:
    """Return the modules whose last names are *tail*, `command_loop` for `proxy.sessions.command_loop`."""
    return [name for name in TEXTS if f".{name}".endswith(f".{tail}")]


def test_every_step_of_the_trace_exists():
    pages = (ROOT / "docs/design").glob("*.md")
    steps = [step for page in pages for step in TRACE.findall(page.read_text())]
    assert len(steps) > 10
    lost = []
    for step in steps:
        parts = step.split(".")
        names = [
            ".".join((module, *parts[length:]))
            for length in range(1, len(parts) + 1)
            for module in named_modules(".".join(parts[:length]))
        ]
        if not any(map(exists, names)):
            lost.append(step)
    assert not lost


MEMBER = re.compile(r"`([A-Z]\w*[a-z]\w*\.[a-z_]\w*)(?:\(\))?`")


def test_every_member_of_a_class_that_the_design_mentions_exists():
    found = [(doc, name) for doc, name in mentions(MEMBER) if doc.startswith("docs/design")]
    assert found
    assert not [
        (doc, name)
        for doc, name in found
        if not any(exists(f"{module}.{name}") for module in holding(name.partition(".")[0]))
    ]


def holding(name: str) -> list[str]:
    """Return the modules with a class or an import of this name."""
    return [module for module, text in TEXTS.items() if name in text]


def test_the_design_lists_every_package():
    block = (ROOT / "docs/design.md").read_text().split("```")[1]
    listed, top = set(), ""
    for indent, name in re.findall(r"^( *)([a-z_]+)(?: |$)", block, re.MULTILINE):
        if not indent:
            top = name
        listed.add(f"{top}/{name}" if indent else name)
    for package in PACKAGES[:3]:
        folders = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
        assert {name for name in listed if name.startswith(f"{package}/")} == {
            f"{package}/{folder}" for folder in folders
        }


def test_the_changelog_has_each_heading_once_in_a_release_and_each_entry_once():
    """A merge by union brings an old text back beside its new one: take main's, and add your lines to it."""
    text = (ROOT / "docs/changelog.md").read_text()
    for release in text.split("\n## ")[1:]:
        headings = re.findall(r"^### (.+)$", release, re.MULTILINE)
        assert len(headings) == len(set(headings)), release[:20]
    entries = re.findall(r"^- .*", text, re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert not [entry for entry in entries if not re.fullmatch(r"- [A-Z`\[].+\.", entry)]


def test_the_changelog_compares_with_released_versions_alone():
    """Say what holds now: nobody ran what stood in the tree between two releases."""
    unreleased, *released = (ROOT / "docs/changelog.md").read_text().split("\n## ")[1:]
    steps = re.findall(
        r"^- .*(?:(?i:before),|no longer|as before|any more).*", unreleased, re.MULTILINE
    )
    assert unreleased.startswith("Unreleased")
    assert released or not steps


def test_a_release_has_its_highlights_alone():
    """One line for each change stands under Unreleased; a merge by union brings old ones back."""
    _, _, *released = (ROOT / "docs/changelog.md").read_text().split("\n## ")
    assert released
    for text in released:
        assert len(re.findall(r"^- ", text, re.MULTILINE)) <= 35, text[:10]


def test_the_documents_stay_short():
    words = sum(len(path.read_text().split()) for path in (ROOT / "docs").rglob("*.md"))
    assert words <= WORDS_MAX, "shorten what your change makes longer"


def test_the_heads_of_packages_name_modules_that_are_there():
    heads = [path for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")]
    missing = [
        f"{path.parent.relative_to(ROOT)}: {name}"
        for path in heads
        for _, name in re.findall(
            r"(?<!`)(``?)([a-z][a-z0-9_]*)\1(?!`)",
            ast.get_docstring(ast.parse(path.read_text())) or "",
        )
        if not ((path.parent / f"{name}.py").is_file() or (path.parent / name).is_dir())
    ]
    assert not missing


# Between two pieces of one text.
SEAM = re.compile(r"""["']\s+[a-z]?["']""")


def texts_of(source: str) -> Iterator[str]:
    """Yield each text of a module; what an f-string puts in is a blank."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.JoinedStr(values=parts):
                yield "".join(
                    str(each.value) if isinstance(each, ast.Constant) else " " for each in parts
                )
            case ast.Constant(value=str(text)):
                yield text
            case _:
                pass


def test_every_refusal_on_its_page_is_an_error_of_the_code():
    """Words in small letters, as errors have them; names, numbers and SQL are the reader's own."""
    page = (ROOT / "docs/sql/refused.md").read_text()
    cells = re.findall(r"^\| (.+?) \| .*\|$", page, re.MULTILINE)
    phrases = [words for cell in cells for words in re.findall(r"`([^`]+)`", cell)]
    phrases = [words for words in phrases if len(words.split()) > 2]
    examples = {
        "NULLIF(COUNT(*), 1) > 1",
        "INSERT INTO t () VALUES ()",
        "SET STATEMENT sql_mode in PREPARE",
        "parts of more than 50000 rows",
    }
    left = {
        phrase: [part.strip() for part in re.split(r"'[^']*'|[A-Z0-9]{2,}|…", phrase)]
        for phrase in set(phrases) - examples
    }
    assert len(left) > 40
    for source in TEXTS.values():
        # Most modules have no such phrase, however its lines are joined, and need not be parsed.
        flat = SEAM.sub("", source)
        if any(all(part in flat for part in parts) for parts in left.values()):
            said = list(texts_of(source))
            for phrase, parts in [*left.items()]:
                if any(all(part in text for part in parts) for text in said):
                    del left[phrase]
    assert not left


DOCS = ROOT / "docs"
SITE = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
BUILD_S = 120.0


def navigation(entry: Any) -> Iterator[str]:
    """Yield the pages below an entry of the navigation, in their order."""
    match entry:
        case str():
            yield entry
        case dict():
            for value in entry.values():
                yield from navigation(value)
        case list():
            for each in entry:
                yield from navigation(each)
        case _:
            raise TypeError(entry)


def test_the_navigation_has_every_page_once():
    pages = list(navigation(SITE["nav"]))
    assert sorted(pages) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_no_link_leaves_the_site():
    """A path outside of docs/ stands in backticks: a site has no such file."""
    strays = [
        (str(page.relative_to(ROOT)), target)
        for page in DOCS.rglob("*.md")
        for target in LINK.findall(page.read_text())
        if "://" not in target and not (page.parent / target).resolve().is_relative_to(DOCS)
    ]
    assert not strays


def test_every_concept_has_a_picture() -> None:
    pages = sorted((DOCS / "concepts").glob("*.md"))
    assert len(pages) >= 8
    assert not [
        page.name
        for page in pages
        if not re.search(r"!\[[^\]]{60,}\]\(\S+\.svg\)", page.read_text())
    ]


def test_every_picture_is_described_and_has_colours_for_the_dark() -> None:
    pictures = [path.read_text() for path in (DOCS / "images").glob("*.svg")]
    assert len(pictures) >= 10
    for each in pictures:
        assert re.search(r"<title id=.title.>.+</title>\s*<desc id=.desc.>.{60,}</desc>", each)
        assert "prefers-color-scheme: dark" in each


def test_the_site_names_the_version() -> None:
    assert SITE["copyright"].startswith(f"streamfrom {__version__},")


@pytest.mark.slow
def test_a_strict_build_finds_a_broken_link_and_nothing_else(tmp_path):
    """One build shows both: that it looks, and that there is nothing to find."""
    pytest.importorskip("zensical", reason="./dev docs installs it")
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copytree(ROOT / ".site", tmp_path / ".site")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    page = tmp_path / "docs/README.md"
    page.write_text(page.read_text() + "\n[gone](sql/stream.md#gone) [away](sql/away.md)\n")
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    told = re.sub(r"\x1b\[[0-9;]*m", "", built.stdout + built.stderr)
    assert built.returncode != 0, told
    assert "anchor does not exist" in told
    assert "page does not exist" in told
    assert "2 issues found" in told
