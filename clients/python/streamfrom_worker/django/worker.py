"""The worker for Django's tasks: one thread takes tasks from the queue, and a pool of threads runs them."""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymysql
from django.db import close_old_connections

from streamfrom_worker.session import is_permanent
from streamfrom_worker.task_store import AT_ONCE, BROKEN, Keeper, Row

from .backend import StreamfromBackend, base, error_of, normalize_json, now, signals


WAIT_S = 1.0  # the wait of one STREAM, and so of a stop
RECONNECT_S = 1.0  # pause after a connection broke

log = logging.getLogger("streamfrom_worker")


class TaskWorker:
    """Runs the tasks of a backend until it is stopped.

    queues: the backend's queues to consume.
    concurrency: how many tasks run at once.
    """

    def __init__(
        self, backend: StreamfromBackend, queues: Sequence[str], concurrency: int
    ) -> None:
        self.id = uuid.uuid4().hex
        self._backend = backend
        self._store = backend.store()
        self._queues = queues
        self._free = threading.Semaphore(concurrency)
        self._pool = ThreadPoolExecutor(concurrency, "streamfrom-task")
        self._held: set[Any] = set()
        self._is_made = False
        self._is_stopped = threading.Event()

    def stop(self) -> None:
        """Take no more tasks; `run` returns once the running ones have finished."""
        self._is_stopped.set()

    def run(self) -> None:
        """Run tasks until `stop`.

        Raises:
            pymysql.MySQLError: a permanent error, such as a missing keyspace or privilege.
        """
        keeper = Keeper(self._store, self._backend.ack_wait_s / 3, lambda: [*self._held])
        try:
            while not self._is_stopped.is_set():
                self._step()
        finally:
            self._pool.shutdown()
            keeper.close()
            self._store.close()

    def _step(self) -> None:
        try:
            if not self._is_made:
                self._store.make()
                self._is_made = True
            self._take()
        except BROKEN as error:
            if is_permanent(error):
                raise
            log.warning("connection broke", extra={"error": str(error)})
            self._is_stopped.wait(RECONNECT_S)

    def _take(self) -> None:
        """Wait up to WAIT_S for tasks and start as many as there is room for."""
        if not self._free.acquire(timeout=WAIT_S):
            return
        room = 1
        while room < AT_ONCE and self._free.acquire(blocking=False):
            room += 1
        rows: Sequence[Row] = ()
        try:
            rows = self._store.take(self._queues, room, WAIT_S, by="tasks")
        finally:
            if room > len(rows):
                self._free.release(room - len(rows))
        self._held.update(row[0] for row in rows)
        for row in rows:
            self._pool.submit(self._work, row)

    def _work(self, row: Row) -> None:
        try:
            self._execute(row)
        except Exception:  # the lease will end, and the task will be redelivered
            log.exception("task not ended", extra={"id": row[0]})
        finally:
            self._held.discard(row[0])
            self._free.release()

    def _execute(self, row: Row) -> None:
        ident, _, queue, text, known = row
        try:
            payload = json.loads(text)
            before = json.loads(known or "{}")
            result = self._backend.result(ident, queue, 0, payload, before)
        except (ImportError, KeyError, TypeError, ValueError) as error:
            log.warning("task parked", extra={"id": ident, "error": str(error)})
            self._store.park(ident, f"{type(error).__name__}: {error}")
            return
        fields = before | {
            "status": "RUNNING",
            "started_at": before.get("started_at") or now(),
            "last_attempted_at": now(),
            "worker_ids": [*before.get("worker_ids", ()), self.id],
        }
        self._store.note(ident, fields)
        result = self._backend.result(ident, queue, 0, payload, fields)
        close_old_connections()
        signals.task_started.send(type(self._backend), task_result=result)
        began_s = time.monotonic()
        ended, failure = _called(result)
        fields |= ended | {"finished_at": now()}
        try:
            self._end(ident, fields, failure)
        except pymysql.MySQLError as error:
            if not is_permanent(error):
                raise
            # The task has run, but its result cannot be stored. Running it again would not help.
            failure = error
            fields.pop("return_value", None)
            fields |= _failed(error)
            self._end(ident, fields, failure)
        log.log(
            logging.DEBUG if failure is None else logging.WARNING,
            "task ended",
            extra={
                "task": payload["task"],
                "id": ident,
                "status": fields["status"],
                "seconds": time.monotonic() - began_s,
            },
            exc_info=failure,
        )
        result = self._backend.result(ident, queue, 0, payload, fields)
        signals.task_finished.send(type(self._backend), task_result=result)

    def _end(self, ident: Any, fields: dict[str, Any], failure: BaseException | None) -> None:
        reason = None if failure is None else f"{type(failure).__name__}: {failure}"
        self._store.end(ident, fields, reason)


def _failed(error: BaseException) -> dict[str, Any]:
    return {"status": "FAILED", "errors": [error_of(error)]}


def _called(result: Any) -> tuple[dict[str, Any], BaseException | None]:
    """Run a task; return the fields of its result, and the exception if it raised one."""
    context = (base.TaskContext(task_result=result),) if result.task.takes_context else ()
    try:
        value = normalize_json(result.task.call(*context, *result.args, **result.kwargs))
    except BaseException as error:  # noqa: BLE001 - the task's; Django's backends catch all, too
        return _failed(error), error
    finally:
        close_old_connections()
    return {"status": "SUCCESSFUL", "return_value": value}, None
