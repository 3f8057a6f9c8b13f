"""Session variables: those that a client has set, and those of a backend connection. Pure.

A client's session lives on whichever backend connection is free, so its variables must
follow it. The server itself reports what a statement set, through its session tracker; the text
is not interpreted. `Settings` is that knowledge: an immutable map of variable to value, nearly always
the same object for the same contents, so that "does this connection fit?" is usually one `is`.

A variable that is not in `TRACKED` is invisible here; a statement that sets one pins the
session to its connection instead (see `proxy.execution.session_state`).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode


# The value of `session_track_system_variables`. Not `*`: with it MySQL 9 adds
# `statement_id` to every reply. MariaDB refuses a list with one name it does not know.
_ON_BOTH: Final = (
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "completion_type",
    "default_storage_engine",
    "div_precision_increment",
    "foreign_key_checks",
    "group_concat_max_len",
    "innodb_lock_wait_timeout",
    "interactive_timeout",
    "lc_time_names",
    "lock_wait_timeout",
    "max_join_size",
    "net_read_timeout",
    "net_write_timeout",
    "optimizer_switch",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_mode",
    "sql_notes",
    "sql_quote_show_create",
    "sql_safe_updates",
    "sql_select_limit",
    "sql_warnings",
    "time_zone",
    "unique_checks",
    "wait_timeout",
)
_ON_MARIADB: Final = ("max_statement_time", "tx_isolation", "tx_read_only")
_ON_MYSQL: Final = ("max_execution_time", "transaction_isolation", "transaction_read_only")

TRACKED: Final = frozenset({*_ON_BOTH, *_ON_MARIADB, *_ON_MYSQL})

# Values that a login also takes, and no reset changes.
_OF_LOGINS: Final = ("init_connect", "max_allowed_packet", "net_buffer_length")


def globals_of_logins(*, is_mariadb: bool) -> str:
    """Return columns of a SELECT, after another one: the global variables by which a new login may differ from an older one that was reset."""
    names = (*_ON_BOTH, *(_ON_MARIADB if is_mariadb else _ON_MYSQL), *_OF_LOGINS)
    return "".join(f", @@global.{name}" for name in names)


_CHARACTER_SET = ("character_set_client", "character_set_connection", "character_set_results")
_NAMED: Final = frozenset({*_CHARACTER_SET, "collation_connection"})
_PLAIN: Final = _NAMED | {"autocommit"}
_READING: Final = (
    "sql_mode",
    "character_set_client",
    "character_set_connection",
    "collation_connection",
)
# In these a byte below 0x80 may be part of another character: `sqlparse_ext.text.multibyte_text`.
MULTIBYTE_CHARSETS: Final = {
    "big5": SqlMode.BIG5,
    "cp932": SqlMode.SJIS,
    "gb18030": SqlMode.GB18030,
    "gbk": SqlMode.GBK,
    "sjis": SqlMode.SJIS,
}
# Python's names for clients' character sets; for others, names beyond ASCII are not known here.
_CODECS: Final = {
    **{name: name for name in ("big5", "cp932", "gb18030", "gb2312", "gbk")},
    **{
        name: name
        for name in ("cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866")
    },
    "eucjpms": "euc_jp",
    "euckr": "euc_kr",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "sjis": "shift_jis",
    "tis620": "tis_620",
    "ujis": "euc_jp",
}
# Bytes that cp1252 lacks and MySQL's latin1 has are control characters of Unicode.
_LATIN1: Final = codecs.charmap_build(
    "".join(bytes((byte,)).decode("cp1252", "ignore") or chr(byte) for byte in range(256))
)
# "" before anything was set.
_UTF8: Final = frozenset({"", "utf8mb4", "utf8mb3", "utf8", "binary"})
_NULLABLE = frozenset({"character_set_results"})
_READ_ONLY: Final = ("tx_read_only", "transaction_read_only")


def _is_on(value: str) -> bool:
    return value.upper() in {"ON", "1"}


class Settings:
    """An immutable, interned map of session variable to value, as the tracker reported them.

    Equal contents are the same object as long as it is remembered; after that, `fits` and `statement_from` compare
    the contents.
    """

    values: Mapping[str, str]
    # Of the variables that decide how the text of a statement is read.
    reading: tuple[str | None, ...]
    # The character set of the client's statements, if half of a character may be a quote.
    unread: str | None
    # How the text of the client's statements is read, apart from sql_mode.
    charset_mode: SqlMode
    # The encoding of names beyond ASCII.
    codec: str
    # The bytes of the client's strings are the stored ones, as far as is known here:
    # columns are UTF-8.
    is_utf8: bool
    # False only when the client switched it off.
    autocommit: bool
    # The client's transactions may not write.
    is_read_only: bool
    # As every session begins, except for a character set whose strings are like UTF-8.
    is_plain: bool
    # How long the client may be silent by its own setting, None if it has none.
    wait_timeout_s: float | None

    _interned: Final[dict[tuple[tuple[str, str], ...], Settings]] = {}
    # The results of `with_changes`. Kept here and not with each object, because a chain of objects
    # that hold one another would never be freed.
    _changed: Final[dict[tuple[Settings, tuple[tuple[str, str], ...]], Settings]] = {}
    _KEPT_MAX: Final = 4096

    def __new__(cls, values: Iterable[tuple[str, str]] = ()) -> Settings:
        """Return the one object with these contents."""
        # Sorted, so that the order in which a client set them makes no other object.
        key = tuple(sorted(dict(values).items()))
        found = cls._interned.get(key)
        if found is None:
            # A client that sets a different value each time must not fill the memory; dropping
            # an entry here only loses the identity shortcut, never a value.
            if len(cls._interned) >= cls._KEPT_MAX:
                cls._interned.clear()
            found = super().__new__(cls)
            found.values = dict(key)
            found.reading = tuple(map(found.values.get, _READING))
            found.autocommit = _is_on(found.values.get("autocommit", "ON"))
            found.is_read_only = any(_is_on(found.values.get(each, "")) for each in _READ_ONLY)
            client_charset = found.values.get("character_set_client", "")
            found.is_utf8 = client_charset in _UTF8
            found.is_plain = (
                found.is_utf8 and found.autocommit and found.values.keys() <= _PLAIN
            )
            found.charset_mode = MULTIBYTE_CHARSETS.get(client_charset, DEFAULT_MODE)
            found.unread = client_charset if found.charset_mode else None
            if not found.is_utf8:
                found.charset_mode |= SqlMode.OTHER_CHARSET
            found.codec = _CODECS.get(client_charset, "utf-8")
            wait_timeout = found.values.get("wait_timeout", "")
            found.wait_timeout_s = float(wait_timeout) if wait_timeout.isdigit() else None
            cls._interned[key] = found
        return found

    def with_changes(self, changes: Iterable[tuple[str, str]]) -> Settings:
        """Return these settings with *changes* applied."""
        key = self, tuple(changes)
        found = self._changed.get(key)
        if found is None:
            if len(self._changed) >= self._KEPT_MAX:
                self._changed.clear()
            found = self._changed[key] = Settings([*self.values.items(), *key[1]])
        return found

    @property
    def sql_mode(self) -> str:
        """The sql_mode the client set, empty when it set none."""
        return self.values.get("sql_mode", "")

    def statement_from(self, known: Settings) -> bytes | None:
        """Return the SET that turns a connection with *known* into these settings.

        None if nothing differs. Only for connections whose variables are a subset: a variable that a
        connection has and these lack cannot be unset, it needs a reset first (`fits`).
        """
        if known is self:
            return None
        changed = {k: v for k, v in self.values.items() if known.values.get(k) != v}
        if not changed:
            return None
        parts = []
        if changed.keys() & _NAMED and (named := _names(self.values)) is not None:
            parts.append(named)
            changed = {k: v for k, v in changed.items() if k not in _NAMED}
        return ("SET " + ", ".join([*parts, *_assignments(changed)])).encode()

    def encoded(self, name: str) -> bytes:
        """Return a name as the client writes it."""
        try:
            return name.encode(self.codec)
        except UnicodeEncodeError:
            return name.encode("utf-8", "surrogateescape")

    def decoded(self, name: bytes) -> str:
        """Return a name that the client has written, with surrogates for bytes that are no text."""
        try:
            return name.decode(self.codec)
        except UnicodeDecodeError:
            return name.decode("utf-8", "surrogateescape")

    def results_encoder(self) -> Callable[[str], bytes] | None:
        """Return a function that encodes a text for the client, as a server would; None for UTF-8 and for the stored bytes.

        Raises:
            Unsupported: the character set is not known here.
        """
        charset = self.values.get("character_set_results", "")
        if charset in _UTF8:
            return None
        if charset == "latin1":
            return lambda text: codecs.charmap_encode(text, "replace", _LATIN1)[0]
        codec = _CODECS.get(charset)
        if codec is None:
            raise Unsupported(
                f"STREAM while character_set_results is {charset}; SET NAMES utf8mb4"
            )
        return lambda text: text.encode(codec, "replace")

    def fits(self, known: Settings) -> bool:
        """True when a connection with *known* has no variable that these settings lack."""
        return known is self or known.values.keys() <= self.values.keys()


def _names(values: Mapping[str, str]) -> str | None:
    """Return the SET NAMES that gives these variables, as a login makes them; None if there is none.

    Set one by one they have the same values, but the columns of answers another collation: the
    first one of `character_set_results`.
    """
    charset, *others = (values.get(name) for name in _CHARACTER_SET)
    collation = values.get("collation_connection")
    if charset is None or collation is None or others != [charset, charset]:
        return None
    if collation != charset and not collation.startswith(f"{charset}_"):
        return None
    named = _literal("character_set_client", charset)
    return f"NAMES {named} COLLATE {_literal('collation_connection', collation)}"


def _assignments(values: Mapping[str, str]) -> Iterable[str]:
    # The connection's collation goes last: setting a character set resets it.
    last = values.get("collation_connection")
    for name, value in values.items():
        if name != "collation_connection":
            yield f"@@session.{name} = {_literal(name, value)}"
    if last is not None:
        yield f"@@session.collation_connection = {_literal('collation_connection', last)}"


def _literal(name: str, value: str) -> str:
    if name in _NULLABLE and value.upper() in {"", "NULL"}:
        return "NULL"
    # Numbers must stand bare ("Incorrect argument type to variable" otherwise).
    if value.lstrip("-").replace(".", "", 1).isdigit():
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def mode_before(settings: Settings, name: str) -> str:
    """Return the assignment that gives only the next transaction the mode of *settings*."""
    value = settings.values.get(name)
    return f"@@{name} = " + (f"@@global.{name}" if value is None else _literal(name, value))


def names(charset: str, collation: str) -> Settings:
    """Return the settings that `SET NAMES charset COLLATE collation` makes."""
    return Settings(
        [(variable, charset) for variable in _CHARACTER_SET]
        + [("collation_connection", collation)]
    )


UNLIMITED: Final = str((1 << 64) - 1)
# Variables that decide the meaning or the answer of the proxy's own statements, whatever the server's globals are.
_OWN: Final = {
    "sql_mode": "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
    "sql_select_limit": UNLIMITED,
    "max_join_size": UNLIMITED,
    "sql_big_selects": "1",
    "sql_quote_show_create": "1",
    "sql_safe_updates": "0",
    "sql_auto_is_null": "0",
    "group_concat_max_len": str(1 << 24),
    "completion_type": "0",
    # Of the table's definition: by default the server waits a day or a year.
    "lock_wait_timeout": "5",
    "foreign_key_checks": "1",
    "unique_checks": "1",
}
# Under REPEATABLE READ a locking read that finds nothing would lock the gap that others insert into.
_OWN_ON_MARIADB: Final = {
    "tx_isolation": "READ-COMMITTED",
    "tx_read_only": "0",
    "max_statement_time": "0",
}
_OWN_ON_MYSQL: Final = {
    "transaction_isolation": "READ-COMMITTED",
    "transaction_read_only": "0",
    "max_execution_time": "0",
}


def own_settings(*, on_mariadb: bool, autocommit: bool) -> Settings:
    """Return the settings of a connection for statements of the proxy's own."""
    by_family = _OWN_ON_MARIADB if on_mariadb else _OWN_ON_MYSQL
    return names("utf8mb4", "utf8mb4_general_ci").with_changes(
        [("autocommit", "ON" if autocommit else "OFF"), *_OWN.items(), *by_family.items()]
    )


def own_statement() -> str:
    """Return the SET that turns a new connection to any server into one for statements of the proxy's own."""
    # On a server that begins without autocommit, MySQL's answer to the login shows it as on.
    common = names("utf8mb4", "utf8mb4_general_ci").with_changes(
        [("autocommit", "ON"), *_OWN.items()]
    )
    statement = common.statement_from(Settings())
    assert statement is not None
    # One comment is text only to MariaDB, the other to MySQL.
    on_mariadb, on_mysql = (
        "".join(f", {each}" for each in _assignments(by_family))
        for by_family in (_OWN_ON_MARIADB, _OWN_ON_MYSQL)
    )
    return f"{statement.decode()} /*M!{on_mariadb} */ /*!80000{on_mysql} */"


def _tracking(names: Iterable[str]) -> bytes:
    return (
        "SET @@session.autocommit = 1,"
        f" @@session.session_track_system_variables = '{','.join(names)}',"
        " @@session.session_track_schema = 1, @@session.session_track_state_change = 1"
    ).encode()


_TRACKING_ON_MARIADB: Final = _tracking((*_ON_BOTH, *_ON_MARIADB))
_TRACKING_ON_MYSQL: Final = _tracking((*_ON_BOTH, *_ON_MYSQL))


def tracking(server_version: str, *, ignores_space: bool = False) -> bytes:
    """Return the SET that makes a server of this version report the changes by sessions.

    It switches autocommit on, as every session begins, whatever the server's own default is.
    ignores_space: as in the login, which MariaDB forgets at a reset.
    """
    found = _TRACKING_ON_MARIADB if "MariaDB" in server_version else _TRACKING_ON_MYSQL
    return found + _IGNORES_SPACE if ignores_space else found


_IGNORES_SPACE: Final = (
    b", @@session.sql_mode = CONCAT_WS(',', NULLIF(@@session.sql_mode, ''), 'IGNORE_SPACE')"
)
