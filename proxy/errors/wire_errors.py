"""Bytes that break the protocol, and files that a client does not send."""

from __future__ import annotations

from streamfrom.proxy.errors.base import ProxyError


class WireError(ProxyError):
    """The peer broke the protocol; all further bytes are unreliable."""

    mysql_code = 1835  # ER_MALFORMED_PACKET
    remedy = "the client broke the protocol; only its connection is closed"

    def __init__(self, detail: str = "") -> None:
        super().__init__(f"Malformed communication packet: {detail}" if detail else "")


class CutTypes(WireError):
    """The types of an execution's parameters are announced but incomplete."""


class ValueOfOtherType(WireError):
    """A server sent a value that does not fit the type of its column; the column is at *place*."""

    def __init__(self, place: int) -> None:
        super().__init__(f"column {place} has a value of another type")
        self.place = place


class MalformedPacket(ProxyError):
    """A command whose contents make no sense. The packet's end is known, so the connection can be kept."""

    mysql_code = 1835  # ER_MALFORMED_PACKET
    remedy = "the driver sent a command that makes no sense; the connection is still open"

    def __init__(self, *, on_mariadb: bool = False) -> None:
        super().__init__(f"Malformed communication packet{'' if on_mariadb else '.'}")


class OutOfOrder(WireError):
    """A packet has the wrong sequence number."""

    mysql_code = 1156  # ER_NET_PACKETS_OUT_OF_ORDER
    sqlstate = "08S01"
    sentence = "Got packets out of order"


class PacketTooLarge(WireError):
    """A packet is announced that is larger than this proxy accepts."""

    mysql_code = 1153  # ER_NET_PACKET_TOO_LARGE
    sqlstate = "08S01"
    remedy = "raise `max_allowed_packet`, or send less at once"
    sentence = "Got a packet bigger than 'max_allowed_packet' bytes"


class CannotUnpack(WireError):
    """A compressed packet does not match its header."""

    mysql_code = 1157  # ER_NET_UNCOMPRESS_ERROR
    sqlstate = "08S01"
    sentence = "Couldn't uncompress communication packet"


class LocalDataDisabled(ProxyError):
    """LOAD DATA LOCAL by a client that announced at login that it sends no files."""

    remedy = "allow local files in the client's options; on MariaDB it is error 4166"

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
        """Return the server family's ER_CLIENT_LOCAL_FILES_DISABLED."""
        return (4166, "HY000") if self.on_mariadb else (3948, "42000")
