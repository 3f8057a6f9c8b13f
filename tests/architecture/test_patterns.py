"""Regular expressions that some Python from 3.11.0 on reads wrongly are not in the tree.

Until 3.11.5 possessive quantifiers and atomic groups go wrong where what they repeat can fail half-way, and until
3.13 where it captures: the match ends elsewhere, or a group's span is wrong (`SystemError`). Over one character
they are right everywhere: `[^']*+`.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants as codes, _parser as parser  # type: ignore[attr-defined]
from typing import TypeGuard

import pytest

from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.text import multibyte_text
from streamfrom.sqlparse_ext.text.lexer_patterns import LEXES


ROOT = Path(__file__).parents[2]
PRODUCT = ("proxy", "engine", "sqlparse_ext", "spark")
ONE_CHARACTER = {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN}


def is_risky(pattern: str | bytes, flags: int = 0) -> bool:
    return any(map(is_risky_node, nodes(parser.parse(pattern, flags))))


def is_risky_node(node: tuple[object, object]) -> bool:
    code, argument = node
    if code is codes.POSSESSIVE_REPEAT:
        assert isinstance(argument, tuple)
        body = argument[2]
        return len(body) != 1 or body[0][0] not in ONE_CHARACTER
    return code is codes.ATOMIC_GROUP


def nodes(tree: object) -> Iterator[tuple[object, object]]:
    """Yield each (code, argument) of what the parser of `re` returned."""
    if isinstance(tree, parser.SubPattern):
        for node in tree:
            yield node
            yield from nodes(node[1])
    elif isinstance(tree, tuple | list):
        for part in tree:
            yield from nodes(part)


RISKY = (
    r"(?:ab|c)*+",
    r"(a)++",
    r"(?:ab)?+",
    r"x(?:a(?!b)){2,3}+",
    r"(?>ab|a)",
    r"(?=((?:a|bc)*+))",
)
FINE = (r"[^']*+", r"a++", r"(.?+)", r"(?:\d{2,3}+b)*", r"\++")


@pytest.mark.parametrize("pattern", [*RISKY, *FINE])
def test_what_is_risky_is_found_and_single_characters_are_not(pattern):
    assert is_risky(pattern) is is_risky(pattern.encode()) is (pattern in RISKY)


def sources() -> list[Path]:
    folders = (*PRODUCT, "tests", "bench", "examples", "clients")
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if re.search(r"^(?:import|from) re\b", path.read_text(), re.MULTILINE)]  # fmt: skip


SOURCES = sources()
MODULES = [
    ".".join(("streamfrom", *path.relative_to(ROOT).with_suffix("").parts))
    for path in SOURCES
    if path.relative_to(ROOT).parts[0] in PRODUCT
]


def compiled(value: object, depth: int = 4) -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    """Yield the patterns in *value*: one, or a container of them."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        yield from compiled(list(value.values()), depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from compiled(part, depth - 1)


@pytest.mark.parametrize("module", MODULES)
def test_no_module_has_a_risky_pattern(module):
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        pytest.skip(f"{missing.name} is not installed")
    names = vars(loaded)
    held = [names, *(dict(vars(each)) for each in names.values() if isinstance(each, type))]
    assert not [each.pattern for each in compiled(held) if is_risky(each.pattern, each.flags)]


def may_be_risky(value: object) -> TypeGuard[str | bytes]:
    """A quick look, before a text is read as a pattern: is there a possessive quantifier or an atomic group?"""
    text = value.decode("latin1") if isinstance(value, bytes) else value
    return isinstance(text, str) and bool(re.search(r"[*+?}]\+|\(\?>", text))


@pytest.mark.filterwarnings("ignore")  # of texts that are no patterns
def test_no_pattern_that_is_written_in_one_piece_is_risky():
    found = []
    for path in SOURCES:
        if path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and may_be_risky(node.value):
                try:
                    risky = is_risky(node.value)
                except (re.error, ValueError, OverflowError):  # a text, or a part of a pattern
                    continue
                if risky:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.value!r}")
    assert not found


@pytest.mark.parametrize("lex", LEXES)
def test_no_pattern_of_a_lexis_is_risky(lex):
    names = [name for name in dir(type(lex)) if not name.startswith("_")]
    held = [getattr(lex, name) for name in names]
    patterns = [*compiled(held), lex.row_with(2)]
    assert len(patterns) > len(names) / 2
    assert not [each.pattern for each in patterns if is_risky(each.pattern, each.flags)]


@pytest.mark.parametrize(
    "mode", [SqlMode.DOLLAR_QUOTES, SqlMode.GBK, SqlMode.SJIS | SqlMode.ANSI_QUOTES]
)
def test_no_pattern_of_a_character_set_is_risky(mode):
    patterns = list(compiled(multibyte_text.reader(int(mode))))
    assert len(patterns) > 2
    assert not [each.pattern for each in patterns if is_risky(each.pattern, each.flags)]
