"""A template's tokens, and a cursor over them.

Literals are single markers here (see `lexer`), so every other byte is code: words, quoted names,
variables and operators. Words compare by `key`, their upper-case form; everything else by its
text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.errors import TooManyTokens
from streamfrom.sqlparse_ext.statements import ListSlot, Param, Slot, TableRef


class Token(NamedTuple):
    """One token of a template."""

    # A bare word in upper case; any other token as written, so that a quoted name (with its quotes) never equals a keyword. A
    # word after a dot counts as quoted. The name of a native function before its parenthesis and of a system variable have no
    # quotes.
    key: str
    start: int
    end: int
    slot: Slot | ListSlot | Param | None = None

    @property
    def is_word(self) -> bool:
        """True for a bare name or keyword."""
        return self.key[:1] in _WORD_FIRST or self.key[:1] >= "\x80"

    @property
    def is_name(self) -> bool:
        """True for a word or a quoted name."""
        return self.is_word or self.key[:1] in _QUOTES

    @property
    def is_variable(self) -> bool:
        """True for a user variable or a system variable."""
        return self.key[:1] == "@"


# The first words of a query, after its parenthesis.
QUERY_WORDS: Final = frozenset({"SELECT", "WITH", "TABLE", "VALUES"})
_WORD_FIRST: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ_$0123456789")
_QUOTES: Final = frozenset('`"')

_BACKTICK = rb"`[^`]*+(?:``[^`]*+)*`(?!`)"
_QUOTED = _BACKTICK.replace(b"`", b'"')
_TOKEN = re.compile(
    rb"([\w$\x80-\xff]++)"  # 1: a word
    rb"|([\x00\x01\x04])"  # 2: a slot
    rb"|(/\*(?:vt)?\+.*?\*/)"  # 3: a hint
    rb"|(@@%(name)b(?:\s*\.\s*%(name)b)*|@@)"  # 4: a system variable
    rb"|@?%(backtick)b|%(quoted)b|@(?:'[^']*+'|\"[^\"]*+\"|[@\w$.\x80-\xff]*+)"
    rb"|<=>|:=|<>|!=|<=|>=|&&|\|\||->>|->|<<|>>|[^\s]"
    % {
        b"name": rb"(?:[\w$\x80-\xff]++|%b|%b)" % (_BACKTICK, _QUOTED),
        b"backtick": _BACKTICK,
        b"quoted": _QUOTED,
    },
    re.DOTALL,
)
_WORD, _SLOT, _HINT, _SYSTEM_VARIABLE = range(1, 5)
_QUOTE_OR_SPACE: Final = re.compile(r"[`\"\s]")
# Functions that servers look up by name, quoted or not, as far as this package looks for them. All other names before a
# parenthesis are words of the grammar, and quoted they are a stored function.
_NATIVE: Final = frozenset(
    {"GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "IS_USED_LOCK", "IS_FREE_LOCK"}
    | {"SERVICE_GET_READ_LOCKS", "SERVICE_GET_WRITE_LOCKS", "SERVICE_RELEASE_LOCKS"}
    | {"CONNECTION_ID", "FOUND_ROWS", "ROW_COUNT", "LAST_INSERT_ID", "DATABASE", "SCHEMA"}
    | {"RAND", "UUID", "UUID_SHORT", "UUID_V4", "UUID_V7", "SYS_GUID", "RANDOM_BYTES"}
    | {"SLEEP", "BENCHMARK", "LOAD_FILE", "UNIX_TIMESTAMP", "ANY_VALUE"}
)


class Tokens(NamedTuple):
    """The tokens of one template."""

    tokens: list[Token]
    hints: list[bytes]  # the comments `/*+ … */` and `/*vt+ … */`, as written


def tokenise(template: bytes) -> Tokens:
    """Cut *template* into its tokens."""
    tokens: list[Token] = []
    hints: list[bytes] = []
    slot = parameter = 0
    for match in _TOKEN.finditer(template):
        start, end = match.span()
        group = match.lastindex
        if group == _WORD:
            # Upper case in ASCII only: a word must not become a keyword by Unicode's rules.
            key = match[0].upper().decode("utf-8", "surrogateescape")
            if tokens and tokens[-1].key == ".":
                key = "`" + key  # t.order, t.end: after a dot every word is a name
            tokens.append(Token(key, start, end))
        elif group == _SLOT:
            kind = ListSlot if match[0] == b"\4" else Slot
            tokens.append(Token(match[0].decode("ascii"), start, end, kind(slot)))
            slot += 1
        elif group == _HINT:
            hints.append(match[0])
        elif group == _SYSTEM_VARIABLE:
            written = match[0].decode("utf-8", "surrogateescape")
            tokens.append(Token(_QUOTE_OR_SPACE.sub("", written), start, end))
        elif match[0] == b"?":
            tokens.append(Token("?", start, end, Param(parameter)))
            parameter += 1
        else:
            if match[0] == b"(" and tokens and tokens[-1].key[0] in _QUOTES:
                _unquote_native(tokens)
            tokens.append(Token(match[0].decode("utf-8", "surrogateescape"), start, end))
    return Tokens(tokens, hints)


def _unquote_native(tokens: list[Token]) -> None:
    """Replace the last token, a quoted name before a parenthesis, by the word that it is for a server if it is a native function."""
    name = tokens[-1]
    word = name.key[1:-1].upper()
    # A schema before it makes it a stored function.
    if word in _NATIVE and not (len(tokens) > 1 and tokens[-2].key == "."):
        tokens[-1] = name._replace(key=word)


def check_length(template: bytes, tokens_max: int) -> None:
    """Raise TooManyTokens if *template* has more than *tokens_max* tokens."""
    for count, _ in enumerate(_TOKEN.finditer(template)):
        if count == tokens_max:
            raise TooManyTokens(tokens_max)


def statement_tokens(template: bytes) -> list[Token]:
    """Return the tokens of the one statement in *template*, without `;` before and after it."""
    return trim(tokenise(template).tokens)


def outside_parens(tokens: list[Token], start: int, end: int) -> Iterator[int]:
    """Yield the places of tokens[start:end] outside parentheses, without the parentheses."""
    depth = 0
    for place in range(start, end):
        key = tokens[place].key
        if key == "(":
            depth += 1
        elif key == ")":
            depth -= 1
        elif not depth:
            yield place


def is_balanced(tokens: list[Token]) -> bool:
    """Return whether the parentheses among *tokens* are balanced."""
    depth = 0
    for token in tokens:
        depth += (token.key == "(") - (token.key == ")")
        if depth < 0:
            return False
    return not depth


def trim(tokens: list[Token]) -> list[Token]:
    """Drop the `;` before and after a statement."""
    start, end = 0, len(tokens)
    while start < end and tokens[start].key == ";":
        start += 1
    while end > start and tokens[end - 1].key == ";":
        end -= 1
    return tokens[start:end]


def unquote(token: Token, template: bytes) -> str:
    """Return the name that *token* (a word, quoted name or user variable) represents."""
    text = template[token.start : token.end].decode("utf-8", "surrogateescape").lstrip("@")
    quote = text[:1]
    if quote in ("`", '"', "'") and len(text) > 1:
        return text[1:-1].replace(quote * 2, quote)
    return text


END: Final = Token("", -1, -1)


def stand_in(key: str) -> Token:
    """Return a token that is not in the template, to be read by its key."""
    return Token(key, 0, 0)


class Cursor:
    """A place among a template's tokens. Past the end is END, whose key is empty.

    end: the index in *tokens* at which the cursor stops; by default the number of tokens.
    """

    def __init__(
        self, tokens: list[Token], template: bytes, at: int = 0, end: int | None = None
    ) -> None:
        self.tokens = tokens
        self.template = template
        self.at = at
        self.end = len(tokens) if end is None else end

    def peek(self, ahead: int = 0) -> Token:
        """Return the token *ahead* of here without moving."""
        place = self.at + ahead
        return self.tokens[place] if place < self.end else END

    @property
    def key(self) -> str:
        """The key of the token here."""
        return self.peek().key

    def take(self) -> Token:
        """Return the token here and move on."""
        token = self.peek()
        self.at += 1
        return token

    def accept(self, *keys: str) -> bool:
        """Move past these tokens if they are here, all of them and in this order."""
        if any(self.peek(ahead).key != key for ahead, key in enumerate(keys)):
            return False
        self.at += len(keys)
        return True

    def accept_any(self, keys: Collection[str]) -> str:
        """Move past one token of *keys* and return its key; else return ""."""
        if self.key in keys:
            return self.take().key
        return ""

    def skip_all(self, keys: Collection[str]) -> frozenset[str]:
        """Move past all tokens of *keys* and return those found."""
        seen = set()
        while key := self.accept_any(keys):
            seen.add(key)
        return frozenset(seen)

    def skip_parens(self) -> bool:
        """At a parenthesis, move past the one that closes it. False if there is none."""
        if self.key != "(":
            return False
        depth = 0
        while self.at < self.end:
            key = self.take().key
            depth += (key == "(") - (key == ")")
            if not depth:
                return True
        return False

    def name(self) -> str | None:
        """Move past a name and return it without quotes; None if there is none."""
        return unquote(self.take(), self.template) if self.peek().is_name else None

    def table(self) -> TableRef | None:
        """Move past `name` or `schema.name`; None if there is none."""
        first = self.name()
        if first is None:
            return None
        if self.accept("."):
            second = self.name()
            return None if second is None else TableRef(first, second)
        return TableRef(None, first)

    def only_table(self) -> tuple[TableRef, ...]:
        """Move past the table name here, if there is one, and return it as all tables of a statement."""
        table = self.table()
        return () if table is None else (table,)

    def find(self, keys: Collection[str]) -> int:
        """Return the index of the next token of *keys* outside parentheses, or the end."""
        depth = 0
        for place in range(self.at, self.end):
            key = self.tokens[place].key
            if key == "(":
                depth += 1
            elif key == ")":
                depth -= 1
                if depth < 0:
                    return place
            elif not depth and key in keys:
                return place
        return self.end


def split_commas(tokens: list[Token], start: int, end: int) -> list[tuple[int, int]]:
    """Return the ranges between the commas outside parentheses in tokens[start:end]."""
    return split_at(tokens, start, end, {","})


def split_at(
    tokens: list[Token], start: int, end: int, keys: Collection[str]
) -> list[tuple[int, int]]:
    """Return the ranges between tokens of *keys* outside parentheses in tokens[start:end]."""
    ranges = []
    for place in outside_parens(tokens, start, end):
        if tokens[place].key in keys:
            ranges.append((start, place))
            start = place + 1
    ranges.append((start, end))
    return ranges
