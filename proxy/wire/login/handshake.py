"""The packets before the first command: greeting, TLS request, login, plugin switches.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html

Flags decide the layout of a login. A login is read by the flags that it contains, because the client laid it out by them.
Only afterwards are the flags reduced to those that the greeting offered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.codec import PacketReader, lenenc_bytes
from streamfrom.proxy.wire.constants import (
    AUTH_MORE_DATA,
    CACHING_SHA2,
    EOF_HEADER,
    NATIVE_PASSWORD,
    NONCE_BYTES,
    UTF8MB4_CHARSET,
    Capability,
    Status,
)


_PROTOCOL_VERSION = 10
# Connection id, begin of the nonce, lower capabilities, collation, status, upper capabilities, size of the nonce.
_GREETING = Struct("<I8sxHBHHB6x")
# Capabilities, size of the largest packet, collation.
_LOGIN = Struct("<IIB19x")
_TLS_REQUEST_BYTES = 32

_ZSTD_LEVEL_DEFAULT = 3
_MARIADB_VERSION = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)-.*MariaDB")


def name_from(raw: bytes) -> str:
    """Return a user, database or attribute name as text; bytes that are not UTF-8 become �."""
    return raw.decode("utf-8", "replace")


def plugin_to_greet(server_version: str) -> str:
    """Return the plugin that clients expect in the greeting of a server of this version.

    For versions before 5.5.16, as which MySQL clients read MariaDB's 5.5.5-, Connector/J reads an
    answer of caching_sha2_password one byte off and gives up a valid login.
    """
    return NATIVE_PASSWORD if server_version.startswith("5.5.5-") else CACHING_SHA2


def version_to_greet(version: str) -> str:
    """Return the version text in the greeting of a server of *version*.

    MariaDB before 11 prefixes 5.5.5- so that old replicas accept a two-digit major version;
    its clients look for that prefix.
    """
    major = version.split(".", 1)[0]
    if "MariaDB" in version and major.isdigit() and int(major) < 11:
        return f"5.5.5-{version}"
    return version


def offer_as(server_version: str, offer: int) -> int:
    """Return the capability flags *offer* as a server of this version sends them.

    https://mariadb.com/kb/en/connection/#capabilities
    """
    if "MariaDB" in server_version:
        return offer & ~Capability.LONG_PASSWORD
    return offer


def extends_metadata(server_version: str) -> bool:
    """Return whether a server of this version can send EXTENDED_METADATA: MariaDB since 10.5.2."""
    found = _MARIADB_VERSION.match(server_version)
    return found is not None and tuple(map(int, found.groups())) >= (10, 5, 2)


@dataclass(frozen=True, slots=True)
class Greeting:
    """The server's first packet (HandshakeV10)."""

    server_version: str
    connection_id: int
    nonce: bytes  # 20 bytes, none of them zero or above 0x7f (Connector/J reads it as text)
    capabilities: int
    charset: int = UTF8MB4_CHARSET
    status: int = Status.AUTOCOMMIT
    plugin: str = CACHING_SHA2

    def encode(self) -> bytes:
        """Return the packet's payload."""
        return b"".join(
            (
                bytes((_PROTOCOL_VERSION,)),
                self.server_version.encode() + b"\0",
                _GREETING.pack(
                    self.connection_id,
                    self.nonce[:8],
                    self.capabilities & 0xFFFF,
                    self.charset & 0xFF,
                    self.status,
                    self.capabilities >> 16 & 0xFFFF,
                    NONCE_BYTES + 1,
                ),
                _extensions(self.capabilities),
                self.nonce[8:] + b"\0",
                self.plugin.encode() + b"\0",
            )
        )


def decode_greeting(payload: bytes) -> Greeting:
    """Read a server's first packet. Servers before 4.1 are refused with WireError."""
    cursor = PacketReader(payload)
    if cursor.uint(1) != _PROTOCOL_VERSION:
        raise WireError("the server does not speak protocol version 10")
    version = name_from(cursor.until_nul())
    connection_id, nonce, lower, charset, status, upper, nonce_bytes = cursor.unpack(_GREETING)
    capabilities = lower | upper << 16
    capabilities |= _read_extensions(cursor, capabilities)
    # "max(13, length of auth-plugin-data - 8)" bytes, of which the last is a NUL.
    nonce += cursor.read(max(13, nonce_bytes - 8))[: NONCE_BYTES - 8]
    plugin = NATIVE_PASSWORD
    if capabilities & Capability.PLUGIN_AUTH:
        # Some old servers forget the final NUL (MySQL bug #59453).
        plugin = name_from(cursor.rest().split(b"\0", 1)[0])
    return Greeting(version, connection_id, nonce, capabilities, charset, status, plugin)


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """A client's login: HandshakeResponse41, or COM_CHANGE_USER."""

    user: str
    response: bytes  # the proof made for *plugin*; empty means no password
    database: str | None
    capabilities: int
    charset: int
    packet_bytes_max: int = 1 << 24
    # None if the client knows no plugins, and then speaks mysql_native_password.
    plugin: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    # The compression level that a client of zstd requests.
    zstd_level: int = _ZSTD_LEVEL_DEFAULT


def is_tls_request(payload: bytes) -> bool:
    """Return whether a client's first packet asks for TLS instead of logging in."""
    return len(payload) == _TLS_REQUEST_BYTES and bool(
        int.from_bytes(payload[:4], "little") & Capability.SSL
    )


def decode_login(payload: bytes) -> LoginRequest:
    """Read a HandshakeResponse41. Clients without PROTOCOL_41 are refused with WireError."""
    if not int.from_bytes(payload[:2], "little") & Capability.PROTOCOL_41:
        raise WireError("the client is older than MySQL 4.1")
    cursor = PacketReader(payload)
    capabilities, packet_bytes_max, charset = cursor.unpack(_LOGIN)
    capabilities |= _read_extensions(cursor, capabilities)
    user = name_from(cursor.until_nul())
    if capabilities & Capability.PLUGIN_AUTH_LENENC:
        response = cursor.lenenc_bytes()
    else:
        response = _response(cursor, capabilities)
    database = None
    # A client may set the flag and still end its packet here (libmysql without a database).
    if capabilities & Capability.CONNECT_WITH_DB and cursor.remaining:
        database = name_from(cursor.until_nul()) or None
    plugin = None
    if capabilities & Capability.PLUGIN_AUTH and cursor.remaining:
        plugin = name_from(cursor.until_nul())
    attributes = _attributes(cursor) if capabilities & Capability.CONNECT_ATTRS else {}
    zstd_level = _ZSTD_LEVEL_DEFAULT
    if capabilities & Capability.ZSTD_COMPRESSION and cursor.remaining:
        zstd_level = cursor.uint(1)
    return LoginRequest(
        user,
        response,
        database,
        capabilities,
        charset,
        packet_bytes_max,
        plugin,
        attributes,
        zstd_level,
    )


def encode_login(login: LoginRequest) -> bytes:
    """Return the payload of a HandshakeResponse41, laid out by ``login.capabilities``."""
    flags = login.capabilities
    pieces = [_login_head(flags, login), login.user.encode() + b"\0"]
    if flags & Capability.PLUGIN_AUTH_LENENC:
        pieces.append(lenenc_bytes(login.response))
    elif flags & Capability.SECURE_CONNECTION:
        pieces.append(bytes((len(login.response),)) + login.response)
    else:
        pieces.append(login.response + b"\0")
    if flags & Capability.CONNECT_WITH_DB:
        pieces.append((login.database or "").encode() + b"\0")
    if flags & Capability.PLUGIN_AUTH:
        pieces.append(
            (NATIVE_PASSWORD if login.plugin is None else login.plugin).encode() + b"\0"
        )
    if flags & Capability.CONNECT_ATTRS:
        pieces.append(_encode_attributes(login.attributes))
    if flags & Capability.ZSTD_COMPRESSION:
        pieces.append(bytes((login.zstd_level,)))
    return b"".join(pieces)


def encode_tls_request(login: LoginRequest) -> bytes:
    """Return the payload that asks for TLS: the head of the login that will follow inside."""
    return _login_head(login.capabilities | Capability.SSL, login)


def decode_change_user(payload: bytes, capabilities: int) -> LoginRequest:
    """Read a COM_CHANGE_USER packet of a client whose effective flags are *capabilities*."""
    cursor = PacketReader(payload, pos=1)
    user = name_from(cursor.until_nul())
    response = _response(cursor, capabilities)
    database = name_from(cursor.until_nul()) or None
    charset = UTF8MB4_CHARSET
    plugin = None
    attributes: Mapping[str, str] = {}
    if cursor.remaining >= 2:
        charset = cursor.uint(2)
        if capabilities & Capability.PLUGIN_AUTH and cursor.remaining:
            plugin = name_from(cursor.until_nul())
        if capabilities & Capability.CONNECT_ATTRS:
            attributes = _attributes(cursor)
    return LoginRequest(
        user, response, database, capabilities, charset, plugin=plugin, attributes=attributes
    )


def _response(cursor: PacketReader, capabilities: int) -> bytes:
    if capabilities & Capability.SECURE_CONNECTION:
        return cursor.read(cursor.uint(1))
    return cursor.until_nul()


def encode_auth_switch(plugin: str, nonce: bytes) -> bytes:
    """Return the payload of an AuthSwitchRequest; the nonce gets its final NUL here."""
    return bytes((EOF_HEADER,)) + plugin.encode() + b"\0" + nonce + b"\0"


def decode_auth_switch(payload: bytes) -> tuple[str, bytes]:
    """Return the plugin and the data of an AuthSwitchRequest: usually a nonce, perhaps with a final NUL."""
    if len(payload) == 1:
        raise WireError("the server asks for the password hash of MySQL before 4.1")
    cursor = PacketReader(payload, pos=1)
    plugin = name_from(cursor.until_nul())
    return plugin, cursor.rest()


def encode_auth_more_data(data: bytes) -> bytes:
    """Return the payload of an AuthMoreData packet."""
    return bytes((AUTH_MORE_DATA,)) + data


def _login_head(flags: int, login: LoginRequest) -> bytes:
    head = _LOGIN.pack(flags & 0xFFFFFFFF, login.packet_bytes_max, login.charset & 0xFF)
    return head + _extensions(flags)


def _extensions(flags: int) -> bytes:
    """Return the four bytes of MariaDB's capabilities, zeros for the others."""
    return bytes(4) if flags & Capability.LONG_PASSWORD else (flags >> 32).to_bytes(4, "little")


def _read_extensions(cursor: PacketReader, flags: int) -> int:
    extensions = cursor.uint(4)
    return 0 if flags & Capability.LONG_PASSWORD else extensions << 32


def _attributes(cursor: PacketReader) -> dict[str, str]:
    """Read connection attributes; a packet that ends before them has none."""
    if not cursor.remaining:
        return {}
    pairs = PacketReader(cursor.lenenc_bytes())
    attributes = {}
    while pairs.remaining:
        name = name_from(pairs.lenenc_bytes())
        attributes[name] = name_from(pairs.lenenc_bytes())
    return attributes


def _encode_attributes(attributes: Mapping[str, str]) -> bytes:
    pairs = b"".join(
        lenenc_bytes(name.encode()) + lenenc_bytes(value.encode())
        for name, value in attributes.items()
    )
    return lenenc_bytes(pairs)
