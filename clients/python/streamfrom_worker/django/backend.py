"""A backend for `django.tasks`, and for `django-tasks` before Django 6."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import import_string

from streamfrom_worker.names import quoted
from streamfrom_worker.producer import Queue
from streamfrom_worker.table import ERROR_MAX
from streamfrom_worker.task_store import UTF8, TaskStore


try:
    from django import tasks as tasks  # Django 6
    from django.tasks import base as base, signals as signals
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.exceptions import TaskResultDoesNotExist
    from django.utils.json import normalize_json as normalize_json
except ImportError:
    import django_tasks as tasks
    from django_tasks import base as base, signals as signals
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.utils import normalize_json as normalize_json


OPTIONS = {
    "database": "default",
    "table": "django_task",
    "ack_wait": 30,
    "purge_after": 7 * 86400,
}


class TaskTable(TaskStore):
    """The queue with a column for results: the result of a task stays in its row until the purge.

    Each thread has its own connection for writing results, so that no task waits for another's commit.
    """

    columns = f"result LONGTEXT {UTF8},"
    taken = f"{TaskStore.taken}, result"

    def note(self, ident: Any, result: Mapping[str, Any]) -> None:
        """Write the current state of a task."""
        self._executed(
            threading.get_ident(),
            f"UPDATE {self._messages} SET result = %s WHERE id = %s AND time_acked IS NULL",
            [json.dumps(result), ident],
        )

    def end(self, ident: Any, result: Mapping[str, Any], error: str | None) -> None:
        """Write the result of a task and acknowledge it."""
        self._executed(
            threading.get_ident(),
            f"UPDATE {self._messages} SET time_acked = NOW(), result = %s, last_error = %s "
            "WHERE id = %s AND time_acked IS NULL",
            [json.dumps(result), error and error[:ERROR_MAX], ident],
        )


class StreamfromBackend(BaseTaskBackend):
    """A backend that stores tasks as rows of a queue.

    OPTIONS: `database`, the alias in DATABASES; `table`, the queue's name; `ack_wait`, seconds until another worker gets
    the tasks of a worker that died; `purge_after`, seconds to keep finished tasks and their results.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        if unknown := sorted(set(self.options) - set(OPTIONS)):
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]: unknown option {unknown[0]!r}; there are {', '.join(OPTIONS)}"
            )
        given = OPTIONS | self.options
        self.database: str = given["database"]
        self.ack_wait_s = float(given["ack_wait"])
        self._table: str = given["table"]
        self._purge_after_s = float(given["purge_after"])

    def store(self) -> TaskTable:
        """Return the queue, with its own connections."""
        settings = connections[self.database].settings_dict
        options = {
            "host": settings["HOST"] or "127.0.0.1",
            "port": int(settings["PORT"] or 3306),
            "user": settings["USER"],
            "password": settings["PASSWORD"],
            "database": settings["NAME"],
            "ssl": settings["OPTIONS"].get("ssl"),
        }
        if options["host"].startswith("/"):
            options |= {"unix_socket": options["host"], "host": "localhost"}
        return TaskTable(options, self._table, self.ack_wait_s, self._purge_after_s)

    def make(self) -> None:
        """Create the queue unless it exists."""
        store = self.store()
        store.make()
        store.close()

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Send a task. It is part of the transaction on the backend's database, if one is open.

        Raises:
            InvalidTask: the backend has no such queue, or the task does not fit it.
            TypeError: an argument cannot be encoded as JSON.
        """
        self.validate_task(task)
        enqueued = datetime.now(timezone.utc)
        payload = {
            "task": task.module_path,
            "args": normalize_json(args),
            "kwargs": normalize_json(kwargs),
            "enqueued_at": enqueued.isoformat(),
            "run_after": task.run_after and task.run_after.isoformat(),
        }
        ident = Queue(self._table).enqueue(
            connections[self.database],
            at=task.run_after and task.run_after.astimezone(),
            # Django's highest priority is delivered first, and so is streamfrom's lowest.
            priority=-task.priority,
            queue=task.queue_name,
            payload=payload,
        )
        result = self._result(task, ident, payload, {})
        signals.task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Return the state and result of a task.

        Raises:
            TaskResultDoesNotExist: the task does not exist or was purged.
        """
        rows: Any = ()
        if str(result_id).isdecimal():
            with connections[self.database].cursor() as cursor:
                cursor.execute(
                    f"SELECT queue, priority, payload, result FROM {quoted(self._table)} WHERE id = %s",
                    [result_id],
                )
                rows = cursor.fetchall()
        if not rows:
            raise TaskResultDoesNotExist(result_id)
        queue, priority, payload, result = rows[0]
        return self.result(
            result_id, queue, priority, json.loads(payload), json.loads(result or "{}")
        )

    def result(
        self,
        ident: Any,
        queue: str,
        priority: int,
        payload: Mapping[str, Any],
        result: Mapping[str, Any],
    ) -> Any:
        """Return the TaskResult of a row.

        Raises:
            ImportError, TypeError: this program has no such task.
        """
        task = import_string(str(payload["task"]))
        if not isinstance(task, base.Task):
            raise TypeError(f"{payload['task']} is not a task")
        task = task.using(
            priority=-priority,
            queue_name=queue,
            backend=self.alias,
            run_after=_moment(payload["run_after"]),
        )
        return self._result(task, ident, payload, result)

    def _result(
        self, task: Any, ident: Any, payload: Mapping[str, Any], result: Mapping[str, Any]
    ) -> Any:
        found = base.TaskResult(
            task=task,
            id=str(ident),
            status=base.TaskResultStatus[result.get("status", "READY")],
            enqueued_at=_moment(payload["enqueued_at"]),
            started_at=_moment(result.get("started_at")),
            last_attempted_at=_moment(result.get("last_attempted_at")),
            finished_at=_moment(result.get("finished_at")),
            args=payload["args"],
            kwargs=payload["kwargs"],
            backend=self.alias,
            errors=[base.TaskError(**error) for error in result.get("errors", ())],
            worker_ids=list(result.get("worker_ids", ())),
        )
        object.__setattr__(found, "_return_value", result.get("return_value"))
        return found


def backends(alias: str | None = None) -> list[StreamfromBackend]:
    """Return the streamfrom backends in TASKS: the one named *alias*, or all."""
    found = [tasks.task_backends[each] for each in tasks.task_backends.settings]
    return [
        each
        for each in found
        if isinstance(each, StreamfromBackend) and alias in (None, each.alias)
    ]


def error_of(error: BaseException) -> dict[str, str]:
    """Return an exception as the fields of Django's TaskError."""
    made = type(error)
    return {
        "exception_class_path": f"{made.__module__}.{made.__qualname__}",
        "traceback": "".join(traceback.format_exception(error)),
    }


def now() -> str:
    """Return the current time in the format of results."""
    return datetime.now(timezone.utc).isoformat()


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
