"""The documents as a site, beside what its own strict build finds: broken links and anchors."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamfrom import __version__


ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
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
        assert re.search(
            r"<title id=.title.>[^<]+</title>\s*<desc id=.desc.>[^<]{60,}</desc>", each
        )
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
