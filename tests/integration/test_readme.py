"""The programs of README.md, of examples/ and of the worker library's README, as they are printed."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.printed_steps import END_S, PrintedSteps
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import HERE
from tests.fixtures.streams import WAIT_S, eventually, rows, run
from tests.integration import toolchains
from tests.integration.conftest import Queue as Place, SharedCluster
from tests.release.test_wheel import UNREACHABLE, environment


pytestmark = pytest.mark.one_server


def test_the_queue_the_producer_and_the_consumer_work(cluster: SharedCluster) -> None:
    text = (HERE / "README.md").read_text().replace("15306", str(cluster.proxy.port))
    _, _, rest = text.partition("\n## A queue, a producer, a consumer\n")
    client = cluster.proxy.connect(database="commerce", autocommit=True)
    with PrintedSteps(rest.partition("\n## ")[0]) as steps:
        steps.sql(client)
        producer = [sys.executable, "-c", steps.take("python")]
        subprocess.run(producer, check=True, timeout=END_S)
        with subprocess.Popen(
            [sys.executable, "-c", steps.take("python")],
            env={**os.environ, "PYTHONPATH": str(HERE / "clients" / "python")},
            stdout=subprocess.PIPE,
            text=True,
        ) as consumer:
            assert consumer.stdout is not None
            assert consumer.stdout.readline() == "{'order': 7}\n"
            acked = "SELECT COUNT(time_acked), COUNT(*) FROM job"
            eventually(lambda: rows(client, acked) == ((1, 2),), "one is acked, one for later")
            consumer.kill()


EXAMPLES = Path(__file__).parents[2] / "examples"
# The table of compose.yaml, and that of the tutorial.
TABLES = {
    "compose": (EXAMPLES / "schema.sql").read_text(),
    "tutorial": "CREATE QUEUE my_message (message VARCHAR(200))",
}


@pytest.mark.parametrize("table", TABLES)
def test_the_consumer_acks_what_the_producer_sends(table, cluster, tmp_path, start_program):
    client = cluster.proxy.connect(database="commerce", autocommit=True).cursor()
    client.execute(TABLES[table])
    environ = toolchains.place(cluster.proxy.port)
    for _ in range(2):  # no message of the second time has an id of the first
        command = [sys.executable, str(EXAMPLES / "producer.py"), "20"]
        done = finished(command, env=environ)
        assert done.stdout == "sent 20 messages\n", done.stderr

    def acked() -> int:
        client.execute("SELECT COUNT(*) FROM my_message WHERE time_acked IS NOT NULL")
        ((count,),) = client.fetchall()
        return int(count)

    log = tmp_path / "said"
    consumer = start_program([sys.executable, EXAMPLES / "consumer.py"], log, env=environ)
    eventually(lambda: acked() == 40, log.read_text(), END_S)
    consumer.send_signal(signal.SIGTERM)
    assert consumer.wait(END_S) == 0, log.read_text()
    *works, bye = log.read_text().splitlines()
    assert len(works) == len(set(works)) * 2 == 40  # each number was sent twice
    assert bye == "bye"


ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "clients" / "python"
BLOCKS = re.findall(
    r"```(python|sql|)\n(.*?)```", (LIBRARY / "README.md").read_text(), re.DOTALL
)
PROGRAMS = [text for language, text in BLOCKS if language == "python"]
(CREATE,) = [text for language, text in BLOCKS if language == "sql"]
COMMANDS = [text.strip() for language, text in BLOCKS if not language]

# All that there are: a new block needs a test, too.
WORKER, INVOICES, PRODUCER, TEST, CELERY, DRAMATIQ, DJANGO = PROGRAMS
INSTALL, WORK, *EXTRAS, DJANGO_WORK = COMMANDS
DATABASES = """
import pymysql
pymysql.version_info = (2, 2, 1, "final", 0)  # what Django asks of mysqlclient
pymysql.install_as_MySQLdb()
DATABASES = {{"default": {{
    "ENGINE": "django.db.backends.mysql", "HOST": "127.0.0.1", "PORT": "{port}", "USER": "root", "NAME": "{keyspace}",
}}}}
SECRET_KEY = "of a test"
"""
DJANGO_PROGRAM = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from streamfrom_worker.django.backend import tasks
def work(): pass
tasks.task(work).enqueue()
"""


class Shop:
    """A folder with programs of the README, whose queue `email` is there."""

    def __init__(self, folder: Path, place: Place) -> None:
        self.folder = folder
        self._port, self._keyspace = place.proxy.port, place.keyspace
        self.client = place.connect()
        run(self.client, CREATE)

    def write(self, name: str, program: str, more: str = "") -> None:
        for printed, real in (
            (
                "app:app-password@127.0.0.1:15306/commerce",
                f"root@127.0.0.1:{self._port}/{self._keyspace}",
            ),
            ("port=15306", f"port={self._port}"),
            (
                'user="app", password="app-password", database="commerce"',
                f'user="root", database="{self._keyspace}"',
            ),
        ):
            program = program.replace(printed, real)
        assert "app-password" not in program
        more = more.format(port=self._port, keyspace=self._keyspace)
        (self.folder / name).write_text(program + more)

    def start(self, *words: str, stderr: int | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-u", *words],
            cwd=self.folder,
            env={"PYTHONPATH": str(LIBRARY), "DJANGO_SETTINGS_MODULE": "settings"},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def run(self, *words: str) -> None:
        process = self.start(*words)
        process.communicate(timeout=WAIT_S)
        assert process.returncode == 0

    def ends(self, process: "subprocess.Popen[str]") -> None:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_S)
        assert process.returncode == 0


@pytest.fixture
def shop(plain: Place, tmp_path: Path) -> Shop:
    return Shop(tmp_path, plain)


def test_a_worker_and_a_producer(shop: Shop) -> None:
    shop.write("jobs.py", WORKER)
    shop.write("producer.py", PRODUCER)
    _, *command = shlex.split(WORK)
    worker = shop.start(*command)
    shop.run("producer.py")
    assert worker.stdout is not None
    assert worker.stdout.readline() == "sending to ada@example.com\n"
    shop.ends(worker)
    found = "SELECT time_acked IS NULL, time_next > NOW(), priority FROM email ORDER BY id"
    assert rows(shop.client, found) == ((0, None, 50), (1, 1, 10))


def test_a_queue_that_is_not_there_is_one_line(shop: Shop) -> None:
    shop.write("jobs.py", WORKER)
    run(shop.client, "DROP QUEUE email")
    worker = shop.start(*shlex.split(WORK)[1:], stderr=subprocess.PIPE)
    _, said = worker.communicate(timeout=WAIT_S)
    assert worker.returncode == 1
    assert re.fullmatch(r"jobs:worker: \(1146, .*email' doesn't exist.*\)\n", said)


def test_work_and_its_ack_in_one_transaction(shop: Shop) -> None:
    run(shop.client, "CREATE QUEUE invoice (payload JSON)")
    run(shop.client, "CREATE TABLE entry (n BIGINT)")
    run(shop.client, """INSERT INTO invoice (payload) VALUES ('{"order": 7}')""")
    shop.write("jobs.py", INVOICES)
    worker = shop.start("-m", "streamfrom_worker", "jobs")
    eventually(lambda: rows(shop.client, "SELECT n FROM entry") == ((7,),))
    shop.ends(worker)
    assert rows(shop.client, "SELECT COUNT(*) FROM invoice WHERE time_acked IS NULL") == ((0,),)


def test_a_test_without_a_server(shop: Shop) -> None:
    shop.write("jobs.py", WORKER)
    shop.write("test_jobs.py", TEST, "\n\ntest_send()\n")
    shop.run("test_jobs.py")


def test_the_frameworks(shop: Shop) -> None:
    shop.write("celery_program.py", CELERY, 'app.send_task("work")\n')
    shop.write(
        "dramatiq_program.py", DRAMATIQ, "dramatiq.actor(print).send(7)\nbroker.close()\n"
    )
    shop.write("settings.py", DJANGO.replace("[..., ", "["), DATABASES)
    shop.write("django_program.py", DJANGO_PROGRAM)
    for program, table in (
        ("celery", "celery_message"),
        ("dramatiq", "dramatiq_message"),
        ("django", "django_task"),
    ):
        shop.run(f"{program}_program.py")
        assert rows(shop.client, f"SELECT COUNT(*) FROM {table}") == ((1,),)
    words = shlex.split(DJANGO_WORK.replace("[--queue mail]", "--queue default"))
    assert words[:2] == ["python", "manage.py"]
    worker = shop.start("-m", "django", *words[2:])
    # A task of a program that the worker does not have: so it was taken.
    parked = "SELECT COUNT(*) FROM django_task WHERE time_next > 8e18"
    eventually(lambda: rows(shop.client, parked) == ((1,),))
    shop.ends(worker)


def test_it_installs_alone_from_its_wheel_on_the_oldest_python(tmp_path: Path) -> None:
    def ran(*command: Any, cwd: Path = tmp_path) -> None:
        done = finished(command, cwd=cwd, env=environment())
        if UNREACHABLE.search(done.stdout + done.stderr):
            pytest.skip("the index of packages cannot be reached")
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]

    python = _oldest()
    source = tmp_path / "clients" / "python"
    shutil.copytree(LIBRARY, source)
    ran(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)
    (wheel,) = tmp_path.glob("*.whl")
    ran(python, "-m", "venv", tmp_path / "venv")
    inside = tmp_path / "venv" / "bin" / "python"
    ran(inside, "-m", "pip", "install", "--quiet", wheel)
    (tmp_path / "jobs.py").write_text(WORKER)
    (tmp_path / "test_jobs.py").write_text(TEST + "\n\ntest_send()\n")
    ran(inside, "test_jobs.py")
    ran(inside, "-c", "import importlib.util as u; assert u.find_spec('streamfrom') is None")
    # As printed: what each framework needs can be found, too.
    for command in (INSTALL, *EXTRAS):
        tool, *words = shlex.split(command)
        assert tool == "pip"
        ran(inside, "-m", "pip", *words, "--dry-run", "--quiet")


def _oldest() -> str:
    for name in ("python3.10", sys.executable):
        found = shutil.which(name)
        # A shim of pyenv may be there without its Python.
        if (
            found
            and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode
            == 0
        ):
            return os.fspath(found)
    raise AssertionError("no Python")
