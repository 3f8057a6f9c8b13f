"""The session settings that change how texts are read: `@@sql_mode`, and the client's character set."""

from __future__ import annotations

from enum import IntFlag
from typing import Final


class SqlMode(IntFlag):
    """The bits of `@@sql_mode` that change how a text is cut into tokens or read.

    The last bits belong to the client's character set. OTHER_CHARSET: bytes of 0x80 and more are not
    UTF-8, so the server stores other bytes. BIG5 to SJIS: a character may contain a
    backslash or a quote. DOLLAR_QUOTES: `$$ … $$` quotes. See `text.multibyte_text`.
    """

    ANSI_QUOTES = 1
    NO_BACKSLASH_ESCAPES = 2
    PIPES_AS_CONCAT = 4
    OTHER_CHARSET = 8
    BIG5 = 16
    GB18030 = 32
    GBK = 64
    SJIS = 128
    DOLLAR_QUOTES = 256

    @classmethod
    def parse(cls, text: str) -> SqlMode:
        """Return the bits named in *text*, the value of `@@sql_mode`. Other modes are ignored."""
        names = {name.strip().upper() for name in text.split(",")}
        mode = DEFAULT_MODE
        for bit in cls:
            if bit.name in names:
                mode |= bit
        return mode


DEFAULT_MODE: Final = SqlMode(0)
