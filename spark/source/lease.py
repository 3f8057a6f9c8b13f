"""Keeps a batch's messages from coming due again while the batch runs."""

import threading
from typing import TYPE_CHECKING, Final

from streamfrom.spark.errors import JobError


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamfrom.spark.source.claims import ClaimShard
    from streamfrom.spark.source.offsets import Claims

BEATS: Final = 3
"""How often in a lease it is renewed: two beats may fail before others may have the messages."""


class LeaseRenewer:
    """Renews what it holds from a thread of its own, until it is told to let it go."""

    def __init__(self, open_shard: "Callable[[str], ClaimShard]", lease_s: float) -> None:
        self._open_shard = open_shard
        self._lease_s = lease_s
        self._shards: dict[str, ClaimShard] = {}
        self._held: tuple[Claims, ...] = ()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._changing = threading.Lock()
        self._renewing = threading.Lock()

    def hold(self, claims: "Claims") -> None:
        """Renew *claims* too from now on."""
        with self._changing:
            self._held = (*self._held, claims)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
                self._thread.start()

    def let_go(self, claims: "Claims") -> None:
        """Renew *claims* no more; if they were not held that is no harm."""
        with self._changing:
            self._held = tuple(held for held in self._held if held != claims)

    def holds(self, claims: "Claims") -> bool:
        """Say whether these are renewed."""
        return claims in self._held

    def stop(self) -> None:
        """Renew nothing any more; what was held comes due when its lease ends."""
        self._held = ()
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        for shard in self._shards.values():
            shard.close()

    def renew_all(self) -> None:
        """Renew all once; what cannot be reached is tried again at the next beat."""
        with self._renewing:
            for name, claims in [pair for held in self._held for pair in held.items()]:
                shard = self._shards.get(name)
                if shard is None:
                    shard = self._shards[name] = self._open_shard(name)
                try:
                    shard.renew(claims, self._lease_s)
                except JobError:
                    continue

    def _run(self) -> None:
        while not self._stopped.wait(self._lease_s / BEATS):
            self.renew_all()
