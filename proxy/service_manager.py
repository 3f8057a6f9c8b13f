"""Notifies the service manager of how far the process is, by the protocol of sd_notify(3), which is a datagram of lines."""

from __future__ import annotations

import socket
import time
from typing import Final

import structlog


log = structlog.get_logger()


class ServiceManager:
    """What started this process and waits for its news; systemd with `Type=notify`.

    address: of the socket that it listens on, as NOTIFY_SOCKET says it: a path, or a name after an "@". With ""
        there is no service manager, and nothing is sent.
    """

    def __init__(self, address: str) -> None:
        # Nothing else is an address of a Unix socket, and sd_notify does not know it either.
        self._address = address if address.startswith(("/", "@")) else ""

    def ready(self) -> None:
        """Say that clients are served, or that the files were read again."""
        self._tell("READY=1")

    def reloading(self) -> None:
        """Say that the files are being read again, until `ready` is called."""
        # By the time systemd distinguishes this reload from one that was over before it asked for it.
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Say that the process ends."""
        self._tell("STOPPING=1")

    def _tell(self, news: str) -> None:
        if not self._address:
            return
        # A name that is no file begins with a null byte.
        address = (
            self._address.replace("@", "\0", 1) if self._address[0] == "@" else self._address
        )
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
                # The loop does not wait: a manager that reads nothing gets nothing.
                sending.settimeout(0)
                sending.sendto(news.encode(), address)
        except OSError as error:
            log.warning("the service manager cannot be notified", news=news, reason=str(error))


NOBODY: Final = ServiceManager("")
