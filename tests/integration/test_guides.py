"""The guides and the SQL of docs/sql and docs/concepts, as they are printed: each statement, file and command, with what it prints."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.fixtures.database_servers import execute, names
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import RunningProxy, by_hash, keyspace_toml, write_vschema
from tests.fixtures.streams import eventually, rows, run, value
from tests.integration import toolchains
from tests.integration.conftest import SharedCluster


ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {page.stem: page.read_text() for page in sorted((DOCS / "guides").glob("*.md"))}
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
STATEMENT = re.compile(r"(?P<sql>(?:.|\n)+?);(?:[ \t]+-- (?:gives(?P<gives>.*)|.*))?\n")
COMMENT = re.compile(r"[ \t]+-- .*$", re.MULTILINE)
END_S = 90.0
PRINTED = {page: BLOCK.findall(text) for page, text in PAGES.items()}
# What a framework's own generator makes, and a page does not print.
SKELETONS = Path(__file__).parent / "guides"
PHP_MODULES = ("mysqlnd", "pdo", "pdo_mysql", "mbstring", "intl", "ctype", "tokenizer", "posix")


class Statement(NamedTuple):
    """A statement, and the first column that it gives; None for whatever comes."""

    sql: str
    gives: str | None


def statements(page: str) -> list[Statement]:
    """Return each statement of the SQL blocks of a page, without its comment."""
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text())
    text = "".join(block for language, _, block in blocks if language == "sql")
    found = [*STATEMENT.finditer(text)]
    assert "".join(each[0] for each in found) == text, "not all of it is read"
    return [
        Statement(COMMENT.sub("", each["sql"]).strip(), each["gives"] and each["gives"].strip())
        for each in found
    ]


def test_every_block_of_a_guide_is_run() -> None:
    languages = {(name, bool(title)) for page in PRINTED.values() for name, title, _ in page}
    unnamed = {language for language, title in languages if not title}
    assert unnamed == {"sql", "console", "text"}
    assert len([page for page in PAGES if statements(f"guides/{page}")]) >= 9
    assert not [page for page, text in PAGES.items() if "](" not in text]


@pytest.mark.parametrize("page", [page for page in PAGES if statements(f"guides/{page}")])
def test_every_statement_does_what_the_guide_says(page: str, cluster: SharedCluster) -> None:
    client = cluster.proxy.connect(database="plain", autocommit=True)
    for sql, gives in statements(f"guides/{page}"):
        values = [str(row[0]) for row in rows(client, sql)]
        if sql.lstrip().startswith("STREAM"):
            values.sort()  # which of several keys is first is not promised
        assert gives in (None, ", ".join(values)), sql


def test_the_servers_own_scheduler_sends_the_job_of_every_day(cluster: SharedCluster) -> None:
    create_queue, create_event, drop = (one.sql for one in statements("guides/recurring")[:3])
    ((before, today),) = cluster.direct("SELECT @@event_scheduler, CURRENT_DATE")
    cluster.direct("SET GLOBAL event_scheduler = ON")
    client = cluster.proxy.connect(database="plain", autocommit=True)
    try:
        for sql in (create_queue, create_event):  # whose first turn is at once
            run(client, sql)
        assert value(client, "STREAM day FROM report LIMIT 2 WAIT 60") >= today
        run(client, drop)
    finally:
        cluster.direct(f"SET GLOBAL event_scheduler = {before}")


def test_the_batch_of_the_examples_ends_with_its_last_step(cluster: SharedCluster) -> None:
    program = [sys.executable, str(ROOT / "examples/batch.py"), "20"]
    for _ in range(2):  # the second time there is a queue, and a batch that is done
        answer = finished(program, env=toolchains.place(cluster.proxy.port))
        assert answer.returncode == 0, answer.stderr
        jobs = [line.partition(": ")[2] for line in answer.stdout.splitlines()]
        assert sorted(jobs[:-1]) == sorted(f"part {n} of 20" for n in range(1, 21))
        assert jobs[-1] == "mail the report"


def path_with_python(page: str) -> Mapping[str, str]:
    if page == "sqlalchemy":
        packages = ["fastapi", "httpx", "pytest", "SQLAlchemy>=2", "PyMySQL", "asyncmy"]
        folder = toolchains.python_with("fastapi", packages).parent
    else:
        folder = Path(sys.executable).parent
    return {
        "PATH": f"{folder}:{sysconfig.get_path('scripts')}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "clients/python"),
    }


def started(command: str, folder: Path) -> list[str]:
    """Return what runs *command* on this machine, where it can be had."""
    first = shlex.split(command)[0]
    if first == "php":
        modules = "".join(f" -d extension={name}" for name in PHP_MODULES)
        packages = ["php-laravel-framework", "php-cli", "php-mysql", "php-intl"]
        return toolchains.in_debian(packages, command.replace("php", f"php8.2{modules}", 1))
    if first == "rails":
        packages = ["ruby-railties", "ruby-activerecord", "ruby-mysql2"]
        return toolchains.in_debian(packages, command.replace("rails", "ruby3.1 bin/rails", 1))
    if first in ("npm", "go", "mvn"):
        toolchains.program(first)
    if "install" in command or command.startswith("go get"):
        toolchains.build(["sh", "-ec", command], folder)
        return ["true"]
    if first == "mvn" and not toolchains.EVERYTHING:
        pytest.skip("Maven fetches all of Spring: DRIVERS=all lets it")
    return ["sh", "-ec", f"exec {command}"]


@pytest.mark.parametrize(
    "page",
    [page for page, blocks in PRINTED.items() if any(each[0] == "console" for each in blocks)],
)
def test_every_program_of_a_guide_prints_what_it_says(page, lone, tmp_path, start_program):
    options = {
        "cwd": tmp_path,
        "env": {**os.environ, **path_with_python(page), "PYTHONUNBUFFERED": "1"},
    }
    for path in (SKELETONS / page).rglob("*"):
        if path.is_file():
            put(tmp_path / path.relative_to(SKELETONS / page), path.read_text(), lone.port)
    for _, name, text in PRINTED[page]:
        if name:
            put(tmp_path / name, text, lone.port)
    console = "".join(text for language, _, text in PRINTED[page] if language == "console")
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        line, *printed = part.splitlines()
        command = started(line, tmp_path)
        if printed:
            log = tmp_path / "printed"
            end_once_printed(start_program(command, log, **options), log, printed)
        else:
            done = finished(command, **options)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def end_once_printed(process: "subprocess.Popen[Any]", log: Path, lines: list[str]) -> None:
    def has_printed() -> bool:
        return all(line in log.read_text() for line in lines)

    eventually(lambda: process.poll() is not None or has_printed(), str(lines), END_S)
    assert has_printed(), log.read_text()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    process.wait(END_S)


def put(path: Path, text: str, port: int) -> None:
    if "django.tasks" in text:
        from django import VERSION

        text = (
            text if VERSION >= (6,) else text.replace("from django.tasks", "from django_tasks")
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("15306", str(port)))


MESSAGES = (
    *(f"concepts/{page.stem}" for page in sorted((DOCS / "concepts").glob("*.md"))),
    "sql/message-tables",
    "sql/queues",
    "sql/stream",
    "sql/messages",
    "sql/times",
    "sql/keyspaces",
    "sql/show",
)
TABLES = """
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id BIGINT, country CHAR(2), total DECIMAL(10,2), paid INT, note VARCHAR(20))
CREATE TABLE items (order_id BIGINT, price DECIMAL(10,2), note VARCHAR(20))
CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR(20), country CHAR(2), is_active TINYINT)
CREATE TABLE archive (id BIGINT PRIMARY KEY, total DECIMAL(10,2))
CREATE TABLE countries (code CHAR(2) PRIMARY KEY)
CREATE QUEUE newsletter (subject VARCHAR(20))
CREATE TABLE a (id BIGINT PRIMARY KEY)
CREATE TABLE b (id BIGINT PRIMARY KEY)
""".strip().splitlines()


def ended(sql: str) -> str:
    endless = sql.startswith("STREAM") and "LIMIT" not in sql
    return f"{sql} LIMIT 1 WAIT 0" if endless else sql


@pytest.mark.parametrize("page", MESSAGES)
def test_statements_on_messages_run(cluster: SharedCluster, page: str) -> None:
    client = cluster.proxy.connect(database="plain", autocommit=True)
    run(client, statements("sql/message-tables")[0].sql)
    run(client, "INSERT INTO my_message (id) VALUES (7), (8)")
    found = statements(page)
    assert found
    for sql, _ in found:
        made = re.match(r"CREATE (?:TABLE|QUEUE) (\w+)", sql)
        if made:
            run(client, f"DROP TABLE IF EXISTS {made[1]}")
        run(client, ended(sql))


@pytest.fixture
def shop(servers, tmp_path, start_proxy):
    """Two sharded keyspaces with the same tables: orders are by id in one, by customer in the other."""
    others = {"items": "order_id", "customers": "id", "archive": "id", "a": "id", "b": "id"}
    config = ""
    made = []
    for keyspace, orders in (("commerce", "id"), ("by_customer", "customer_id")):
        database = next(names)
        made.append(database)
        for server in servers:
            execute(server, f"CREATE DATABASE {database}")
        folder = tmp_path / keyspace
        folder.mkdir()
        vschema = by_hash(orders=orders, **others)
        vschema["tables"]["countries"] = {"type": "reference"}
        path = write_vschema(folder, vschema)
        config += keyspace_toml(keyspace, servers, database, path)
    yield start_proxy(config)
    for database in made:
        for server in servers:
            execute(server, f"DROP DATABASE {database}")


def test_statements_over_shards_run(shop: RunningProxy) -> None:
    clients = {
        name: shop.connect(database=name, autocommit=True)
        for name in ("commerce", "by_customer")
    }
    for client in clients.values():
        for sql in TABLES:
            run(client, sql)
    found = statements("sql/routing")
    assert len(found) > 15
    for sql, _ in found:
        run(clients["by_customer" if "customer_id" in sql else "commerce"], sql)
