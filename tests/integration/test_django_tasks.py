"""Django's tasks on streamfrom: a project, its `manage.py` and real workers before a real proxy."""

import json
import os
import re
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.programs import StartProgram, finished, kill
from tests.fixtures.streams import WAIT_S, eventually, rows, run
from tests.integration.conftest import Lone, Queue as Place


pytestmark = pytest.mark.one_server

LIBRARY = Path(__file__).parents[2] / "clients" / "python"
ACK_WAIT_S = 3
SETTINGS = """
import os, pymysql
pymysql.version_info = (2, 2, 1, "final", 0)  # what Django asks of mysqlclient
pymysql.install_as_MySQLdb()
SECRET_KEY = "of a test"
USE_TZ = True
INSTALLED_APPS = ["streamfrom_worker.django"]
DATABASES = {"default": {
    "ENGINE": "django.db.backends.mysql", "HOST": "127.0.0.1", "PORT": os.environ["PORT"], "USER": "root",
    "NAME": os.environ["KEYSPACE"],
}}
TASKS = {"default": {
    "BACKEND": "streamfrom_worker.django.backend.StreamfromBackend", "QUEUES": ["default", "mail"],
    "OPTIONS": {"ack_wait": %d},
}}
"""
TASKS = """
import os, time
from streamfrom_worker.django.backend import tasks
task = tasks.task

def say(*words):
    os.write(1, (" ".join(map(str, words)) + chr(10)).encode())

@task
def add(a, b):
    return a + b

@task(queue_name="mail")
def note(word):
    say("note", word, time.time())

@task
async def fail():
    raise LookupError("no such customer")

@task(takes_context=True)
def work(context, seconds):
    say("begin", context.attempt)
    time.sleep(seconds)
    say("end", context.attempt)

@task
def odd():
    return object()

@task
def answer(count):
    say("answer", count)
    return "x" * count
"""


class Project:
    """A Django project of its own, in a folder."""

    def __init__(
        self, folder: Path, place: Place | Lone, start: StartProgram, keyspace: str = ""
    ) -> None:
        self.folder = folder
        self._start = start
        (folder / "settings_of_test.py").write_text(SETTINGS % ACK_WAIT_S)
        (folder / "tasks_of_test.py").write_text(TASKS)
        self._environ = {
            **os.environ,
            "PORT": str(place.proxy.port),
            "KEYSPACE": keyspace or place.keyspace,
            "DJANGO_SETTINGS_MODULE": "settings_of_test",
            "PYTHONPATH": f"{LIBRARY}{os.pathsep}{folder}",
        }

    def manage(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "django", *words]
        return finished(command, cwd=self.folder, env=self._environ)

    def runs(self, program: str) -> Any:
        """Return what *program* assigns to `found`, in a process of its own."""
        text = "import django, json; django.setup()\nfrom tasks_of_test import *\n"
        text += textwrap.dedent(program) + "\nprint(json.dumps(found, default=str))"
        done = finished([sys.executable, "-c", text], cwd=self.folder, env=self._environ)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def work(self, name: str, *words: str) -> subprocess.Popen[Any]:
        command = [sys.executable, "-m", "django", "streamfrom_worker", *words]
        return self._start(command, self.folder / name, cwd=self.folder, env=self._environ)

    def said(self, name: str, word: str) -> list[list[str]]:
        lines = [line.split() for line in (self.folder / name).read_text().splitlines()]
        return [line for line in lines if line[:1] == [word]]


def migrated(folder: Path, place: Place | Lone, start: StartProgram) -> Project:
    project = Project(folder, place, start)
    done = project.manage("migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture
def project(plain: Place, tmp_path: Path, start_program: StartProgram) -> Project:
    return migrated(tmp_path, plain, start_program)


def test_tasks_and_their_results(project: Project, plain: Place) -> None:
    ids = project.runs(
        """
        from datetime import datetime, timedelta, timezone
        from django.db import transaction
        found = {"add": add.enqueue(1, b=2).id, "fail": fail.enqueue().id, "odd": odd.enqueue().id}
        for n, priority in enumerate((-100, 0, 100)):
            note.using(priority=priority).enqueue(f"p{priority}")
        due = datetime.now(timezone.utc) + timedelta(seconds=3)
        found["due"] = due.timestamp()
        note.using(run_after=due).enqueue("later")
        try:
            with transaction.atomic():
                note.enqueue("rolled-back")
                raise KeyError
        except KeyError:
            pass
        with transaction.atomic():
            note.enqueue("committed")
            found["begun"] = add.get_result(found["add"]).status
        """
    )
    assert ids["begun"] == "READY"
    worker = project.work("out")
    eventually(lambda: len(project.said("out", "note")) == 5)
    notes = project.said("out", "note")
    assert [line[1] for line in notes[:2]] == ["p100", "p0"]
    assert {line[1] for line in notes} == {"p100", "p0", "p-100", "later", "committed"}
    (later,) = (line for line in notes if line[1] == "later")
    assert float(later[2]) >= ids["due"]
    worker.terminate()
    assert worker.wait(WAIT_S) == 0
    found = project.runs(
        f"""
        results = [add.get_result({ids["add"]!r}), fail.get_result({ids["fail"]!r}), odd.get_result({ids["odd"]!r})]
        found = [[r.status, r.attempts, r.args, r.kwargs, [e.exception_class_path for e in r.errors]] for r in results]
        found.append([results[0].return_value, results[0].finished_at >= results[0].started_at >= results[0].enqueued_at])
        """
    )
    assert found[0] == ["SUCCESSFUL", 1, [1], {"b": 2}, []]
    assert found[1] == ["FAILED", 1, [], {}, ["builtins.LookupError"]]
    assert found[2][0] == "FAILED"
    assert found[3] == [3, True]
    asked = "SELECT last_error FROM django_task WHERE last_error LIKE 'L%'"
    errors = rows(plain.connect(), asked)
    assert errors == (("LookupError: no such customer",),)
    missing = project.runs(
        """
        found = []
        for each in ("12", "no-number"):
            try:
                add.get_result(each)
            except Exception as error:
                found.append(type(error).__name__)
        """
    )
    assert missing == ["TaskResultDoesNotExist"] * 2


def test_a_killed_workers_task_is_anothers_and_a_long_one_stays_its_own(project):
    ident = project.runs(f"found = work.enqueue({2 * ACK_WAIT_S}).id")
    first = project.work("first")
    eventually(lambda: project.said("first", "begin") == [["begin", "1"]])
    kill(first)
    project.work("second", "--concurrency", "2")
    eventually(lambda: project.said("second", "end"))
    # Longer than the lease, and yet no other thread or process was given it.
    assert project.said("second", "begin") == [["begin", "2"]]
    result = f"work.get_result({ident!r})"
    eventually(lambda: project.runs(f"found = {result}.status") == "SUCCESSFUL")
    assert project.runs(f"found = {result}.attempts") == 2


def test_a_task_that_this_program_does_not_have_is_parked(project, plain):
    payload = json.dumps(
        {
            "task": "no_module.task",
            "args": [],
            "kwargs": {},
            "enqueued_at": datetime.now(UTC).isoformat(),
            "run_after": None,
        }
    )
    client = plain.connect()
    wrong = payload, payload.replace('"no_module.task"', "7"), "[]", "no JSON"
    for each in wrong:
        run(client, f"INSERT INTO django_task (queue, payload) VALUES ('default', '{each}')")
    project.work("out")
    sql = "SELECT last_error FROM django_task WHERE time_acked IS NULL AND time_next > 8e18"
    eventually(lambda: len(rows(client, sql)) == len(wrong))
    assert "ModuleNotFoundError: No module named 'no_module'" in {
        e for (e,) in rows(client, sql)
    }


def test_djangos_connection_sends_and_acknowledges_in_its_transaction(project, plain):
    run(plain.connect(), "CREATE QUEUE mail (payload JSON)")
    found = project.runs(
        """
        from django.db import connection, transaction
        from streamfrom_worker import Message, Queue
        found = []
        for word in ("rolled back", "committed"):
            with transaction.atomic():
                ident = Queue("mail").enqueue(connection, payload={"word": word})
                transaction.set_rollback(word == "rolled back")
        for _ in range(2):
            found.append(Message("mail", ident, 1).acknowledge(connection))
        """
    )
    assert found == [True, False]
    left = rows(plain.connect(), "SELECT payload FROM mail WHERE time_acked > 0")
    assert [json.loads(payload) for (payload,) in left] == [{"word": "committed"}]


def test_what_the_server_refuses_is_its_own_error_and_spares_the_rest(
    lone, tmp_path, start_program
):
    project = migrated(tmp_path, lone, start_program)
    found = project.runs(
        """
        found = []
        for each in (
            lambda: add.enqueue("x" * 2_000_000, ""),
            lambda: add.using(queue_name="other").enqueue(1, 2),
        ):
            try:
                each()
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
        found.append(answer.enqueue(2_000_000).id)
        found.append(answer.enqueue(3).id)
        """
    )
    assert "1153" in found[0]
    assert found[1].startswith("InvalidTask")
    project.work("out")
    acked = "SELECT COUNT(time_acked) FROM django_task"
    eventually(lambda: lone.direct(acked) == ((2,),))
    # It was not run again because its result cannot be stored.
    assert sorted(project.said("out", "answer")) == [
        ["answer", "2000000"],
        ["answer", "3"],
    ]
    results = project.runs(
        f"""
        results = [answer.get_result(each) for each in {found[2:]!r}]
        found = [[r.status, [e.exception_class_path for e in r.errors]] for r in results]
        """
    )
    assert results == [["FAILED", ["pymysql.err.OperationalError"]], ["SUCCESSFUL", []]]


def test_values_become_what_json_holds_as_with_djangos_own_backends(project: Project) -> None:
    found = project.runs(
        """
        from datetime import date
        sent = add.enqueue(b"a", b="b")
        found = [sent.args, add.enqueue((1, 2), b=(3,)).id]
        try:
            add.enqueue(date(2026, 1, 1), 1)
        except TypeError as error:
            found.append(str(error))
        """
    )
    assert found[0] == ["a"]
    assert found[2].startswith("Unsupported type")
    project.work("out")
    result = f"result = add.get_result({found[1]!r})"
    value = f"{result}\nfound = result.is_finished and result.return_value"
    eventually(lambda: project.runs(value) == [1, 2, 3])


def test_what_cannot_be_is_refused_with_a_sentence(project: Project) -> None:
    for words, sentence in (
        (("--backend", "other"), "TASKS has no backend of streamfrom with the alias 'other'"),
        (("--queue", "other"), "no queue 'other' in TASKS['default']['QUEUES']"),
        (("--concurrency", "0"), "--concurrency must be at least 1, not 0"),
    ):
        done = project.manage("streamfrom_worker", *words)
        assert done.returncode == 1
        assert re.search(re.escape(sentence), done.stderr)
