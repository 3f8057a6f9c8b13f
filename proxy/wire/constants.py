"""The protocol's numbers, under the manual's names, as far as the proxy uses them.

Flags: https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html
Commands: https://dev.mysql.com/doc/dev/mysql-server/latest/my__command_8h.html
MariaDB's own: https://mariadb.com/kb/en/connection/#capabilities

Flags are plain integers: an operation on an ``IntFlag`` costs about 0.4 µs, one on an ``int`` 0.02 µs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Capability:
    """The capabilities of a peer; those that both sides announced are in force."""

    LONG_PASSWORD: Final = 1  # cleared by MariaDB clients: "I speak the MariaDB extensions"
    FOUND_ROWS: Final = 1 << 1
    LONG_FLAG: Final = 1 << 2
    CONNECT_WITH_DB: Final = 1 << 3
    COMPRESS: Final = 1 << 5
    LOCAL_FILES: Final = 1 << 7
    IGNORE_SPACE: Final = 1 << 8
    PROTOCOL_41: Final = 1 << 9
    INTERACTIVE: Final = 1 << 10
    SSL: Final = 1 << 11
    TRANSACTIONS: Final = 1 << 13
    SECURE_CONNECTION: Final = 1 << 15
    MULTI_STATEMENTS: Final = 1 << 16
    MULTI_RESULTS: Final = 1 << 17
    PS_MULTI_RESULTS: Final = 1 << 18
    PLUGIN_AUTH: Final = 1 << 19
    CONNECT_ATTRS: Final = 1 << 20
    PLUGIN_AUTH_LENENC: Final = 1 << 21
    CAN_HANDLE_EXPIRED_PASSWORDS: Final = 1 << 22
    SESSION_TRACK: Final = 1 << 23
    DEPRECATE_EOF: Final = 1 << 24
    ZSTD_COMPRESSION: Final = 1 << 26
    # MariaDB's own, which travels separately and only between peers that both clear LONG_PASSWORD.
    EXTENDED_METADATA: Final = 1 << 35

    @classmethod
    def names(cls, flags: int) -> str:
        """Return the names of *flags*, joined by |."""
        values = vars(cls).items()
        return "|".join(name for name, flag in values if name.isupper() and flags & flag)


class Status:
    """The server's state, at the end of every answer."""

    IN_TRANS: Final = 0x0001
    AUTOCOMMIT: Final = 0x0002
    MORE_RESULTS_EXISTS: Final = 0x0008
    CURSOR_EXISTS: Final = 0x0040
    LAST_ROW_SENT: Final = 0x0080
    DB_DROPPED: Final = 0x0100
    NO_BACKSLASH_ESCAPES: Final = 0x0200
    PS_OUT_PARAMS: Final = 0x1000
    IN_TRANS_READONLY: Final = 0x2000
    SESSION_STATE_CHANGED: Final = 0x4000
    ANSI_QUOTES: Final = 0x8000  # MariaDB only


class Command(IntEnum):
    """The first byte of a command packet."""

    QUIT = 0x01
    INIT_DB = 0x02
    QUERY = 0x03
    FIELD_LIST = 0x04
    STATISTICS = 0x09
    PROCESS_KILL = 0x0C
    PING = 0x0E
    CHANGE_USER = 0x11
    STMT_PREPARE = 0x16
    STMT_EXECUTE = 0x17
    STMT_SEND_LONG_DATA = 0x18
    STMT_CLOSE = 0x19
    STMT_RESET = 0x1A
    SET_OPTION = 0x1B
    STMT_FETCH = 0x1C
    RESET_CONNECTION = 0x1F


class FieldType(IntEnum):
    """Column types in a column definition."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    VARCHAR = 15
    BIT = 16
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


BLOB_TYPES: Final = frozenset(
    {FieldType.TINY_BLOB, FieldType.MEDIUM_BLOB, FieldType.LONG_BLOB, FieldType.BLOB}
)
# Those of character strings and of byte strings; `ColumnDefinition.charset` distinguishes them.
STRING_TYPES: Final = BLOB_TYPES | {FieldType.VARCHAR, FieldType.VAR_STRING, FieldType.STRING}


class FieldFlag:
    """Properties of a column in a column definition."""

    UNSIGNED: Final = 32
    ZEROFILL: Final = 64
    ENUM: Final = 256
    SET: Final = 2048
    NO_DEFAULT_VALUE: Final = 4096


class TrackerKind(IntEnum):
    """Kinds of session state in an OK packet."""

    SYSVAR = 0
    SCHEMA = 1
    STATE = 2  # "something changed", without details
    GTIDS = 3
    TXCHAR = 4  # the statements that would start this transaction again
    TXSTATE = 5


# The first byte of a packet, if it decides the kind of packet.
OK_HEADER: Final = 0x00
AUTH_MORE_DATA: Final = 0x01
LOCAL_INFILE: Final = 0xFB
EOF_HEADER: Final = 0xFE  # also AuthSwitchRequest while logging in
ERR_HEADER: Final = 0xFF

FRAME_BYTES_MAX: Final = 0xFFFFFF  # a frame of this size is followed by another
HEADER_BYTES: Final = 4

NATIVE_PASSWORD: Final = "mysql_native_password"  # noqa: S105 - a plugin's name
CACHING_SHA2: Final = "caching_sha2_password"
NONCE_BYTES: Final = 20

# The proxy's offer to clients. SSL is added if a certificate is configured.
PROXY_OFFER: Final = (
    Capability.LONG_PASSWORD
    | Capability.FOUND_ROWS
    | Capability.LONG_FLAG
    | Capability.CONNECT_WITH_DB
    | Capability.LOCAL_FILES
    | Capability.IGNORE_SPACE
    | Capability.PROTOCOL_41
    | Capability.INTERACTIVE
    | Capability.TRANSACTIONS
    | Capability.SECURE_CONNECTION
    | Capability.MULTI_STATEMENTS
    | Capability.MULTI_RESULTS
    | Capability.PS_MULTI_RESULTS
    | Capability.PLUGIN_AUTH
    | Capability.CONNECT_ATTRS
    | Capability.PLUGIN_AUTH_LENENC
    | Capability.CAN_HANDLE_EXPIRED_PASSWORDS
    | Capability.SESSION_TRACK
    | Capability.DEPRECATE_EOF
)

# Offered as well if every server has it. A server is asked for it if the client has it
# (`SessionState.variant`): it changes the layout of every column definition.
MARIADB_METADATA: Final = Capability.EXTENDED_METADATA

# Offered as well. Not requested from a backend, because the proxy runs close to its servers.
COMPRESSIONS: Final = Capability.COMPRESS | Capability.ZSTD_COMPRESSION

# Every backend must offer these: `response_reader` relies on them for that leg.
BACKEND_NEEDS: Final = (
    Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.TRANSACTIONS
    | Capability.PLUGIN_AUTH
    | Capability.SESSION_TRACK
    | Capability.DEPRECATE_EOF
)

# Requested from a backend if it offers them. Never MULTI_STATEMENTS (the proxy splits, so an
# injected second statement has no way in).
BACKEND_WISHES: Final = BACKEND_NEEDS | (
    Capability.LONG_PASSWORD
    | Capability.LONG_FLAG
    | Capability.MULTI_RESULTS
    | Capability.PS_MULTI_RESULTS
    | Capability.PLUGIN_AUTH_LENENC
    | Capability.CONNECT_ATTRS
    # `response_reader` gives a file to a server for LOAD DATA LOCAL only, whatever it requests.
    | Capability.LOCAL_FILES
)

BINARY_CHARSET: Final = 63
UTF8MB4_CHARSET: Final = 45  # utf8mb4_general_ci: the one utf8mb4 collation all servers know

# Collation ids a client may name in its login → (character set, collation), if no server of
# this proxy knows the number.
CHARSETS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        5: ("latin1", "latin1_german1_ci"),
        8: ("latin1", "latin1_swedish_ci"),
        9: ("latin2", "latin2_general_ci"),
        11: ("ascii", "ascii_general_ci"),
        26: ("cp1250", "cp1250_general_ci"),
        31: ("latin1", "latin1_german2_ci"),
        33: ("utf8mb3", "utf8mb3_general_ci"),
        45: ("utf8mb4", "utf8mb4_general_ci"),
        46: ("utf8mb4", "utf8mb4_bin"),
        47: ("latin1", "latin1_bin"),
        48: ("latin1", "latin1_general_ci"),
        49: ("latin1", "latin1_general_cs"),
        51: ("cp1251", "cp1251_general_ci"),
        57: ("cp1256", "cp1256_general_ci"),
        59: ("cp1257", "cp1257_general_ci"),
        63: ("binary", "binary"),
        65: ("ascii", "ascii_bin"),
        76: ("utf8mb3", "utf8mb3_tolower_ci"),
        83: ("utf8mb3", "utf8mb3_bin"),
        192: ("utf8mb3", "utf8mb3_unicode_ci"),
        224: ("utf8mb4", "utf8mb4_unicode_ci"),
        246: ("utf8mb4", "utf8mb4_unicode_520_ci"),
        255: ("utf8mb4", "utf8mb4_0900_ai_ci"),
        278: ("utf8mb4", "utf8mb4_0900_as_cs"),
        305: ("utf8mb4", "utf8mb4_0900_as_ci"),
        309: ("utf8mb4", "utf8mb4_0900_bin"),
        2304: ("utf8mb4", "utf8mb4_uca1400_ai_ci"),
    }
)
