"""Words that readers stumble over, in documents, in what programs print, and in their comments; `./dev check` runs this, too."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path


ROOT = Path(__file__).parents[2]
# Machines log, print and return; people have roles: no consumer, another client, any user.
ODD = re.compile(
    r"\b(tells?|told|whoever|nobody|somebody|everybody|beside|mend(s|ed|ing)?|as ever|likewise|for ever|kin|anew)\b",
    re.IGNORECASE,
)
# Literal translations, which documents had many of.
CALQUE = re.compile(
    r"\b(goes on|by (itself|themselves)|once more|and the like|at (its|their) moment|held up)\b",
    re.IGNORECASE,
)
# The first line of a docstring names the thing that is returned, and does not begin with a pronoun in its place.
OPENING = re.compile(
    r'"""(Return )?(what|who|whose|whom|by what|of what|of which|take in)\b', re.IGNORECASE
)
PROSE = ("*.md", ".github/*.md", "docs/**/*.md", "clients/**/*.md", "examples/**/*.md")
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<[^>]*>", re.DOTALL)
# Names of code, as docstrings have them.
NAME = re.compile(r"`[^`]*`|\*\w+\*|^ *\w+: ", re.MULTILINE)
PROGRAMS = ("proxy", "engine", "sqlparse_ext", "spark", "clients/python", "examples")
SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def prose(text: str) -> str:
    """Return *text* with blanks in the place of code and addresses, line for line."""
    return CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def printed(source: str) -> Iterator[tuple[int, str]]:
    """Yield each text of a program that may be printed, and its line: a blank is in it, and it is no docstring."""
    tree = ast.parse(source)
    heads = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, SCOPES) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if " " in text and node not in heads:
                yield node.lineno, text


def said(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment and docstring of a program, without names of code, and its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_text = token.type == tokenize.STRING and '"""' in token.string[:4]
        if is_text or token.type == tokenize.COMMENT:
            yield token.start[0], NAME.sub(" ", token.string)


def test_documents_speak_as_a_colleague_would() -> None:
    odd = [
        f"{path.relative_to(ROOT)}:{number}: {found[0]}"
        for pattern in PROSE
        for path in ROOT.glob(pattern)
        if "node_modules" not in path.parts
        for number, line in enumerate(prose(path.read_text()).splitlines(), 1)
        for found in (*ODD.finditer(line), *CALQUE.finditer(line))
    ]
    assert not odd


def test_programs_speak_as_a_colleague_would() -> None:
    odd = [
        f"{path.relative_to(ROOT)}:{number}: {found[0]}"
        for folder in PROGRAMS
        for path in (ROOT / folder).rglob("*.py")
        for source in [path.read_text()]
        # To read all of them as programs takes seconds.
        if ODD.search(source) or OPENING.search(source)
        for number, text in (*printed(source), *said(source))
        for found in (*ODD.finditer(text), *OPENING.finditer(text))
    ]
    assert not odd


def test_the_check_finds_an_odd_word_and_spares_code() -> None:
    assert ODD.search(prose("It tells `who` asked"))
    assert OPENING.search('"""Return what is due."""')
    assert not OPENING.search('"""Return the rows that show what is due."""')
    assert not ODD.search(prose("`tells` [it](tells.md)\n```\ntells\n```"))
    program = '"""He told."""\nprint("she told")  # `told`, they told\n'
    assert [text for _, text in printed(program)] == ["she told"]
    assert [text for _, text in said(program)] == ['"""He told."""', "#  , they told"]
