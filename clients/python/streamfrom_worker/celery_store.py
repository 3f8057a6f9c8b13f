"""The tables of Celery's messages and bindings."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any, Final

from .names import quoted_column
from .task_store import TEXT, TaskStore


KEPT_S: Final = 10**9  # 31 years: the purge must not delete bindings


class CeleryStore(TaskStore):
    """The table of messages and the table of bindings."""

    def __init__(
        self, options: dict[str, Any], table: str, ack_wait: float, purge_after: float
    ) -> None:
        super().__init__(options, table, ack_wait, purge_after)
        self._bindings = quoted_column(f"{table}_binding")

    def make(self) -> None:
        """Create both tables unless they exist."""
        super().make()
        # A queue, so its rows have a place in a sharded keyspace, too. They are acknowledged, so no stream gets them.
        self.run(
            f"CREATE QUEUE IF NOT EXISTS {self._bindings} (id CHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
            f"exchange VARCHAR(191) {TEXT}, routing_key VARCHAR(191) {TEXT}, queue VARCHAR(191) {TEXT}, "
            f"pattern VARCHAR(1000) {TEXT}, seen DOUBLE, KEY (exchange), KEY (queue)) WITH (purge_after = {KEPT_S})"
        )

    def bind(
        self, exchange: str, routing_key: str, pattern: str, queue: str, *, is_temporary: bool
    ) -> None:
        """Store a binding. Repeating it for a temporary queue shows that its process is alive."""
        name = "\0".join((exchange, routing_key, queue)).encode()
        self.run(
            f"INSERT INTO {self._bindings} (id, time_acked, exchange, routing_key, queue, pattern, seen) "
            "VALUES (%s, NOW(), %s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE seen = VALUES(seen)",
            [
                hashlib.sha1(name, usedforsecurity=False).hexdigest(),
                exchange,
                routing_key,
                queue,
                pattern,
                time.time() if is_temporary else None,
            ],
        )

    def unbind(self, queue: str) -> None:
        """Delete all bindings of *queue*."""
        self.run(f"DELETE FROM {self._bindings} WHERE queue = %s", [queue])

    def bindings(self, exchange: str) -> Sequence[tuple[str, str, str, float | None]]:
        """Return each (routing key, pattern, queue, Unix time at which the process of a temporary queue was last seen)."""
        found: Sequence[tuple[str, str, str, float | None]] = self.run(
            f"SELECT routing_key, pattern, queue, seen FROM {self._bindings} WHERE exchange = %s",
            [exchange],
        )
        return found
