"""Which certificates gRPC accepts, read each time that a process connects.

gRPC asks in a thread of its own for each handshake, and takes an answer in place of what it has. It frees what it
had at once, without a lock: another thread that begins a handshake in that moment crashes the process. Four clients
that connected and left crashed it within 15 s on grpcio 1.71 to 1.85 where each handshake got a new answer, and not
where it got none (1.62 did not crash); so did a proxy that was paused, and then had several knocks to answer at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final


# From an answer to what gRPC makes of it, or from a handshake's beginning to its own copy, take microseconds.
SETTLE_S: Final = 0.05


class TrustedCertificates:
    """Answers gRPC only when something has changed, and while no other handshake begins.

    read: what to trust by now, in PEM. It is called in threads.
    answered: what gRPC got last; at first what *read* returns at once.
    """

    def __init__(
        self,
        read: Callable[[], bytes],
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._read = read
        self._now_s = now_s
        self._sleep = sleep
        self.answered = read()
        self._settled_s = 0.0
        self._lock = threading.Lock()

    def changed(self) -> bytes | None:
        """Return what to trust from now on; None for what was answered last.

        Handshakes whose answer is a new one, and those right after it, take SETTLE_S longer.
        """
        with self._lock:
            self._sleep(max(0.0, self._settled_s - self._now_s()))
            trusted = self._read()
            if trusted == self.answered:
                return None
            # Handshakes that have had their answer, and not yet their copy of what is replaced now.
            self._sleep(SETTLE_S)
            self.answered = trusted
            self._settled_s = self._now_s() + SETTLE_S
            return trusted
