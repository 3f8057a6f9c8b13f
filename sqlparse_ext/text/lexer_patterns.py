r"""The regular expressions that cut a text into code, literals, comments and blanks.

There is one set of them for each way of quoting (`lexis`). A text takes linear time, because no bytes can be read
in two ways: repetitions of a single character are possessive, and alternatives begin differently or look ahead.
Possessive quantifiers over more than one character, and atomic groups, are not used: CPython 3.11.0 to 3.11.4 reads
them wrongly, and up to 3.13 if they contain groups. Longer units repeat only a few times (`{0,64}`) if a text can be long,
since each repetition is kept on a stack.

Each is compiled on first use, which takes 1 to 11 ms. All of them took 200 ms, a sixth of the time
in which the proxy starts, and most are for texts that few clients send.
"""

from __future__ import annotations

import re
from functools import cache, cached_property
from typing import Final

from streamfrom.sqlparse_ext.sql_mode import SqlMode


NUMBER: Final = b"\0"  # a number, x'..', b'..'
STRING: Final = b"\1"
BAD: Final = b"\2"  # a byte that begins no token: an open quote, a control character
ROWS: Final = b"\3"  # VALUES rows of literals, NULL and DEFAULT only
LIST: Final = b"\4"  # the literals of an IN list
CALL_ROWS: Final = b"\5"  # VALUES rows that also call harmless functions, such as NOW()
ROW_LITERAL: Final = b"\6"  # a literal inside other VALUES rows: not a slot
# The first bytes of literals that are strings; every other literal is a NUMBER.
STRING_FIRST: Final = frozenset(b"'\"_nN")

_MARKS = rb"\x00-\x06"
_BLANK = rb"[ \t\n\r\f\v]"
_BLANKS = _BLANK + rb"*+"
_WORD = rb"[\w$\x80-\xff]"
_OPERATORS = rb"[,=()<>*+;:!%&|^~?\[\]{}\\]{0,8}+"
_HINT = rb"/\*(?:vt)?\+[^*" + _MARKS + rb"]*+(?:\*(?!/)[^*" + _MARKS + rb"]*+)*\*/"
_BEHIND_DASHES = rb"[\x00-\x20\x7f]|\Z"  # with this two dashes begin a comment
_COMMENT = (
    rb"/\*(?!(?:vt)?\+)[^*]*+(?:\*(?!/)[^*]*+)*(?:\*/|\Z)"
    rb"|#[^\n]*+|--(?=" + _BEHIND_DASHES + rb")[^\n]*+"
)
_NO_WORD = rb"(?!" + _WORD + rb")"
_EXPONENT = rb"[eE][-+]?+[0-9]++"
# Integers come first: most are.
_NUMBER = (
    rb"[0-9][0-9]*+(?:(?![\w$.\x80-\xff])|\.[0-9]*+(?:" + _EXPONENT + rb"|)" + _NO_WORD
    + rb"|" + _EXPONENT + _NO_WORD + rb"|(?=\.))"
    rb"|\.[0-9]++(?:" + _EXPONENT + rb"|)" + _NO_WORD
    + rb"|0(?:x[0-9a-fA-F]++|b[01]++)" + _NO_WORD
)  # fmt: skip
# Rows that call one of these are as uniform as rows of literals: no session state decides
# their value, and they change none.
_HARMLESS_CALL = (
    rb"(?i:NOW|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP|SYSDATE|UTC_TIMESTAMP|UNIX_TIMESTAMP"
    rb"|CURDATE|CURTIME|CURRENT_DATE|CURRENT_TIME|UTC_DATE|UTC_TIME|UUID|RAND)\( ?+(?:[0-9] ?+|)\)"
)


class Lexis:
    """The regular expressions for one way of quoting."""

    # The comma between two rows, with the blanks around it.
    comma: Final = re.compile(_BLANKS + rb"," + _BLANKS)

    def __init__(self, *, ansi_quotes: bool, backslash_escapes: bool) -> None:
        self.ansi_quotes = ansi_quotes
        self.backslash_escapes = backslash_escapes
        if backslash_escapes:
            # The first quote ends most of them, even with escapes; the lookahead keeps these from being
            # read a second time, in the other way.
            first = rb"[^']*+(?<!\\)'(?!')"
            single = (
                rb"'(?:"
                + first
                + rb"|(?!"
                + first
                + rb")[^'\\]*+(?:(?:\\.|'')[^'\\]*+)+'(?!'))"
            )
        else:
            single = rb"'[^']*+(?:''[^']*+)*'(?!')"
        double = single.replace(b"'", b'"')
        backtick = rb"`[^`" + _MARKS + rb"]*+(?:`(?!`)|(?:``[^`" + _MARKS + rb"]*+)+`(?!`))"
        quoted = backtick + rb"|" + backtick.replace(b"`", b'"') if ansi_quotes else backtick
        string = single if ansi_quotes else single + rb"|" + double

        # Only introducers that leave the bytes of the literal unchanged; `_latin1'..'` is cut
        # into a word and a literal, which is not read as a value.
        introducer = (
            rb"(?i:binary|utf8mb4|utf8mb3|utf8|ascii)" + _BLANKS
            + rb"(?='|[xXbB]'|0[xb]" + (rb")" if ansi_quotes else rb'|")')
        )  # fmt: skip
        # N'…' has the escapes of any string; X'…' and B'…' end at the next quote.
        string += rb"|[nN]" + single + rb"|[xXbB]'[^']*+'"
        literal = (
            string + rb"|" + _NUMBER
            # A minus right after one of = ( , < > can only be a sign.
            + rb"|(?:(?<=[=(,<>])|(?<=[=(,<>] ))-(?:" + _NUMBER
            + rb")|_" + introducer + rb"(?:" + string + rb"|" + _NUMBER + rb")"
        )  # fmt: skip
        # A quoted user variable keeps its quotes: its name is code, not a value.
        variable = (
            rb"@(?:'[^'\\" + _MARKS + rb"]*+'|\"[^\"\\" + _MARKS + rb"]*+\"|" + backtick
            + rb"|[@\w$.\x80-\xff]*+)"
        )  # fmt: skip
        # A word takes the operators after it, and the space before it.
        rest = rb"[\w$.\x80-\xff]*+" + _OPERATORS
        letter = rb"[AC-MO-WYZac-mo-wyz$\x80-\xff]"
        name = backtick + _OPERATORS
        code = (
            rb"(?:" + letter + rest
            + rb"| (?:" + letter + rest + rb"|[xXbBnN](?!')" + rest + rb"|" + name
            + rb"|(?![ \t\n\r\f\v]|/\*(?!(?:vt)?\+)|#|--(?:" + _BEHIND_DASHES + rb")))"
            rb"|[,=()<>*+;:!%&|^~?\[\]{}\\]" + _OPERATORS
            # After a name a number is a name, too.
            + rb"|\.(?:" + name + rb"|(?<=" + (rb'[`"]' if ansi_quotes else b"`") + rb"\.)" + _WORD + rest
            + rb"|(?![0-9]))"
            rb"|[xXbBnN](?!')" + rest
            + rb"|" + name + (rb"|" + name.replace(b"`", b'"') if ansi_quotes else b"")
            + rb"|_(?!" + introducer + rb")" + rest
            + rb"|" + variable
            + rb"|-(?!-(?:" + _BEHIND_DASHES + rb"))(?!(?:(?<=[=(,<>]-)|(?<=[=(,<>] -))[0-9.])"
            rb"|/(?!\*)|" + _HINT
            + rb"|(?!" + _NUMBER + rb")[0-9]" + rest + rb")"
        )  # fmt: skip
        noise = rb"(?:" + _BLANK + _BLANKS + rb"|" + _COMMENT + rb")"
        # An open quote or hint takes all that is left, as it does on the server. Looking for
        # tokens after it would also take quadratic time.
        bad = rb"(['\"`].*+|/\*.*+|.)"
        self._code, self._literal, self._noise, self._bad = code, literal, noise, bad
        plain = (
            string + rb"|" + _NUMBER
            + rb"|(?i:NULL|DEFAULT|TRUE|FALSE)(?!" + _WORD + rb"| ?\()"
            rb"|-(?:" + _NUMBER + rb")|_" + introducer + rb"(?:" + string + rb"|" + _NUMBER + rb")"
        )  # fmt: skip
        self._calls = rb"(?:" + plain + rb"|" + _HARMLESS_CALL + rb")"
        row = _row(rb"(?:" + plain + rb"|" + _HARMLESS_CALL + rb"())")
        self._rows = row + rb"(?:" + _BLANKS + rb"," + _BLANKS + row + rb"){0,15}"
        self._head = _insert_head(rb"(?:" + quoted + rb"|" + _WORD + rb"++)")

    @cached_property
    def pieces(self) -> re.Pattern[bytes]:
        """The pattern of the pieces: its `findall` returns (code, literal, comments and blanks, bad byte) for each."""
        return re.compile(
            rb"(" + self._code + rb"{0,64})(?:(" + self._literal + rb")|(" + self._noise
            + rb"+)|\Z|(?=" + self._code + rb")|" + self._bad + rb")",
            re.DOTALL,
        )  # fmt: skip

    @cached_property
    def head(self) -> re.Pattern[bytes]:
        """The head of an INSERT."""
        return re.compile(self._head, re.DOTALL)

    @cached_property
    def rows(self) -> re.Pattern[bytes]:
        """Some rows of literals and harmless calls. Its last group, an empty one, matches if there are calls."""
        return re.compile(self._rows, re.DOTALL)

    @cached_property
    def element(self) -> re.Pattern[bytes]:
        """A value of a row of `rows` (group 1) and the blanks around it."""
        return re.compile(_BLANKS + rb"(" + self._calls + rb")" + _BLANKS, re.DOTALL)

    @cached_property
    def skeleton(self) -> re.Pattern[bytes]:
        """The way to the next parenthesis or comma outside literals, names and comments (group 1); see `chunks.marks`."""
        return self._marks(rb"[(),]", rb"(),")

    @cached_property
    def parameter(self) -> re.Pattern[bytes]:
        """The way to the next `?` outside literals, names and comments (group 1); see `chunks.marks`."""
        return self._marks(rb"\?", rb"?")

    @cached_property
    def version_comment(self) -> re.Pattern[bytes]:
        """The way to the next beginning of a version comment, or end of one (group 1); see `version_comments`."""
        return self._marks(rb"/\*M?!|\*/", rb"*")

    def _marks(self, mark: bytes, first: bytes) -> re.Pattern[bytes]:
        """Find the next *mark*, which begins with a byte of *first*; stop before a literal, name or comment that is open or long.

        One literal of 15 MB took 35 ms in one call, 75 ms with an escape in every other byte, while no other
        thread ran. With these bounds a call looks at 256 KB of a literal at most: 1 ms.
        """
        few = rb"{0,4096}+(?:%s%s{0,4096}+){0,64}"
        escaped = rb"\\.|" if self.backslash_escapes else b""
        inside = rb"[^'\\]" if self.backslash_escapes else rb"[^']"
        # The end is no first half of a doubled quote.
        single = rb"'" + inside + few % (rb"(?:%s'')" % escaped, inside) + rb"'(?!')"
        name = rb"`[^`" + _MARKS + rb"]" + few % (rb"``", rb"[^`" + _MARKS + rb"]") + rb"`(?!`)"
        double = name.replace(b"`", b'"') if self.ansi_quotes else single.replace(b"'", b'"')
        comment = rb"/\*(?!M?!)[^*]" + few % (rb"\*(?!/)", rb"[^*]") + rb"\*/"
        line = rb"(?:#|--(?=" + _BEHIND_DASHES + rb"))[^\n]{0,4096}+(?=\n|\Z)"
        code = (
            rb"[^%b'\"`/#-]{1,4096}+|(?!%b)[%b]|/(?!\*)|-(?!-(?:" + _BEHIND_DASHES + rb"))"
        ) % (first, mark, first)
        return re.compile(
            rb"(?:%b){0,256}(%b)?"
            % (b"|".join((single, double, name, comment, line, code)), mark),
            re.DOTALL,
        )

    @cache  # noqa: B019 - a Lexis lives as long as the program
    def row_with(self, index: int) -> re.Pattern[bytes]:
        """Return the pattern of a row of `rows`, whose group 1 is the value at *index*; a short row has none."""
        comma = _BLANKS + rb"," + _BLANKS
        return re.compile(
            rb"\(" + _BLANKS + rb"(?:(?:" + self._calls + comma + rb"){%d}(" % index + self._calls
            + rb")|" + self._calls + rb")(?:" + comma + self._calls + rb")*" + _BLANKS + rb"\)",
            re.DOTALL,
        )  # fmt: skip


def _insert_head(name: bytes) -> bytes:
    # A gap takes all that it can: otherwise each of them would try each share of the comments again.
    gap = (
        _BLANKS + rb"(?:(?![/#-])|(?:(?:" + _COMMENT + rb"|" + _HINT + rb")" + _BLANKS
        + rb")+(?![/#-]))"
    )  # fmt: skip
    option = rb"(?i:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE|INTO)(?!" + _WORD + rb")"
    return (
        rb"(" + gap + rb"(?i:INSERT|REPLACE)(?!" + _WORD + rb")" + gap
        + rb"(?:" + option + gap + rb")*" + name + rb"(?:\." + name + rb"|)" + gap
        + rb"(?:\(" + _BLANKS + name + rb"(?:" + _BLANKS + rb"," + _BLANKS + name + rb")*"
        + _BLANKS + rb"\)" + gap + rb"|)(?i:VALUES?)" + gap + rb")"
    )  # fmt: skip


def _row(element: bytes) -> bytes:
    return (
        rb"\(" + _BLANKS + element + rb"(?:" + _BLANKS + rb"," + _BLANKS + element + rb")*"
        + _BLANKS + rb"\)"
    )  # fmt: skip


# Text that may come between two rows, in addition to the comma.
BETWEEN_ROWS: Final = re.compile(rb"(?:" + _BLANK + rb"|" + _COMMENT + rb")*", re.DOTALL)


LEXES: Final = tuple(
    Lexis(
        ansi_quotes=bool(bits & SqlMode.ANSI_QUOTES),
        backslash_escapes=not bits & SqlMode.NO_BACKSLASH_ESCAPES,
    )
    for bits in range(4)
)


def lexis(mode: SqlMode) -> Lexis:
    """Return the regular expressions that read a text under *mode*."""
    return LEXES[int(mode) & 3]
