"""Bytes that break the protocol, and files that a client does not give."""

from __future__ import annotations

from streamfrom.proxy.errors.base import ProxyError


class WireError(ProxyError):
    """The peer broke the protocol; nothing after these bytes can be trusted."""

    mysql_code = 1835  # ER_MALFORMED_PACKET

    def __init__(self, detail: str) -> None:
        super().__init__(f"Malformed communication packet: {detail}")
        self.detail = detail


class CutTypes(WireError):
    """The types of an execution's parameters are announced, and not all there."""


class MalformedPacket(ProxyError):
    """A command that makes no sense inside. The packet's end is known: the connection goes on."""

    mysql_code = 1835  # ER_MALFORMED_PACKET

    def __init__(self, *, on_mariadb: bool = False) -> None:
        super().__init__(f"Malformed communication packet{'' if on_mariadb else '.'}")


class OutOfOrder(WireError):
    """A packet carries another sequence number than its turn."""

    mysql_code = 1156  # ER_NET_PACKETS_OUT_OF_ORDER
    sqlstate = "08S01"

    def __init__(self, got: int, expected: int) -> None:
        super().__init__(f"sequence {got} where {expected} was due")
        self.args = ("Got packets out of order",)
        self.got = got
        self.expected = expected


class PacketTooLarge(WireError):
    """A packet is announced that is larger than this proxy accepts."""

    mysql_code = 1153  # ER_NET_PACKET_TOO_LARGE
    sqlstate = "08S01"

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"more than {bytes_max} bytes")
        self.args = ("Got a packet bigger than 'max_allowed_packet' bytes",)
        self.bytes_max = bytes_max


class CannotUnpack(WireError):
    """A compressed piece is not what its header says."""

    mysql_code = 1157  # ER_NET_UNCOMPRESS_ERROR
    sqlstate = "08S01"

    def __init__(self) -> None:
        super().__init__("compressed data that cannot be unpacked")
        self.args = ("Couldn't uncompress communication packet",)


class LocalDataDisabled(ProxyError):
    """LOAD DATA LOCAL by a client that said at login that it gives no files."""

    def __init__(self, *, on_mariadb: bool) -> None:
        super().__init__(
            "The used command is not allowed because the MariaDB server or client has disabled"
            " the local infile capability"
            if on_mariadb
            else "Loading local data is disabled; this must be enabled on both the client and"
            " server sides"
        )
        self.on_mariadb = on_mariadb

    def wire_code(self) -> tuple[int, str]:
        """Return the code of the server at hand: its ER_CLIENT_LOCAL_FILES_DISABLED."""
        return (4166, "HY000") if self.on_mariadb else (3948, "42000")
