"""Text in character sets of which a backslash or a quote may be the second half of a character.

The lexers here read bytes. For these character sets they are given a text of the same length in
which each character beyond ASCII is a row of `$`, a letter of names that no keyword has. The rules
of what is one character are the servers' own: `ismbchar_gbk`, `ismbchar_big5`, `ismbchar_sjis`,
`my_ismbchar_gb18030` of their `strings/ctype-*`. A backslash in a literal takes the one byte behind
it, of whatever character that is the first one (`get_text` of their `sql_lex.cc`).
"""

from __future__ import annotations

import re
from typing import Final


_SJIS: Final = rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\xa1-\xdf]"
_CHARACTERS: Final = {
    "big5": re.compile(rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]"),
    "cp932": re.compile(_SJIS),
    "gb18030": re.compile(
        rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[0-9][\x81-\xfe][0-9])"
    ),
    "gbk": re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]"),
    "sjis": re.compile(_SJIS),
}  # fmt: skip
_WITH_ESCAPES: Final = {
    charset: re.compile(characters.pattern + rb"|\\.", re.DOTALL)
    for charset, characters in _CHARACTERS.items()
}
# In a name and in a comment a backslash is a letter.
_NAME_OR_COMMENT: Final = re.compile(rb"[`#]|--|/\*")


def masked(text: bytes, charset: str, *, backslash_escapes: bool) -> bytes | None:
    """Return *text* with `$` for each byte of its characters beyond ASCII.

    None where a byte is part of no character, and where a backslash is before such a character and
    may be in a literal or beside it: whoever reads it may cut it otherwise.
    """
    found = _CHARACTERS[charset].sub(_row, text)
    if backslash_escapes:
        escaped = _WITH_ESCAPES[charset].sub(_row, text)
        if escaped != found and _NAME_OR_COMMENT.search(text):
            return None
        found = escaped
    return found if found.isascii() else None


def _row(character: re.Match[bytes]) -> bytes:
    found = character[0]
    if found.startswith(b"\\"):
        return found if found.isascii() else b"\\$"
    return b"$" * len(found)
