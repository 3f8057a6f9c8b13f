"""Keeps a batch's messages from coming due again while the batch runs."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from streamfrom.spark.errors import JobError


if TYPE_CHECKING:
    from streamfrom.spark.source.claims import ClaimShard
    from streamfrom.spark.source.offsets import Claims

BEATS: Final = 3
"""How often a lease is renewed while it lasts: two renewals may fail before others may take the messages."""


class LeaseRenewer:
    """Renews the leases of the claims it holds, from a thread of its own."""

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
        """Renew *claims* from now on."""
        with self._changing:
            self._held = (*self._held, claims)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
                self._thread.start()

    def let_go(self, claims: "Claims") -> None:
        """Renew *claims* no more; fine also for claims that are not held."""
        with self._changing:
            self._held = tuple(held for held in self._held if held != claims)

    def holds(self, claims: "Claims") -> bool:
        """Whether *claims* are renewed."""
        return claims in self._held

    def stop(self) -> None:
        """Renew nothing any more; the messages held come due when their leases end."""
        self._held = ()
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        for shard in self._shards.values():
            shard.close()

    def renew_all(self) -> None:
        """Renew all leases once; a shard that cannot be reached is tried again the next time."""
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
