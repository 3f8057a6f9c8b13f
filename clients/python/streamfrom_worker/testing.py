"""Test your functions without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .message import Message
from .outcomes import Outcome, Result
from .worker import Worker


class TestQueue:
    """An in-memory version of one of a worker's queues.

    ::

        def test_send():
            queue = TestQueue(worker, "email")
            queue.enqueue(payload={"to": "ada@example.com"})
            assert [result.outcome for result in queue.work()] == [Outcome.ACKED]

    Delays are ignored: a retried message is ready for the next `work`.
    """

    __test__ = False  # pytest must not collect this class

    def __init__(self, worker: Worker, name: str) -> None:
        self._handler = worker.handlers[name]
        self._count = 0
        self.ready: list[Message] = []
        self.parked: list[Message] = []

    def enqueue(self, **columns: Any) -> int:
        """Add a message and return its id; a dict or list must be JSON-serializable."""
        self._count += 1
        values = {
            name: json.loads(json.dumps(value)) if isinstance(value, dict | list) else value
            for name, value in columns.items()
        }
        self.ready.append(Message(self._handler.queue, self._count, 1, values))
        return self._count

    def work(self) -> Sequence[Result]:
        """Call the function once for each ready message, and return the results."""
        messages, self.ready = self.ready, []
        size = self._handler.batch or 1
        results: list[Result] = []
        with ThreadPoolExecutor(1) as threads:
            for start in range(0, len(messages), size):
                batch = messages[start : start + size]
                for message, result in zip(
                    batch, asyncio.run(self._handler.call(batch, threads)), strict=True
                ):
                    results.append(result)
                    if result.outcome is Outcome.RETRIED:
                        again = message.delivery + 1
                        self.ready.append(
                            Message(message.queue, message.id, again, message.columns)
                        )
                    elif result.outcome is Outcome.PARKED:
                        self.parked.append(message)
        return results
