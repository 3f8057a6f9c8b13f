"""Tools that look at a whole schema: migrations, dumps, ORMs, each on an empty keyspace and on a used one.

A tool is a list of steps. A step is a command that ends with exit code 0, prints what it should and leaves exactly
the tables that it should: what it found of ours would be one too many. The base line says that each holds direct as well.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pymysql

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.streams import message_table
from tests.suites.fetching import (
    debian_tree,
    go_program,
    java_libraries,
    node_modules,
    python_with,
)
from tests.suites.suite import HOST, Outcome, Outcomes, Run, Suite


STEP_S: Final = 300.0
DATABASE: Final = "shop"
OTHER: Final = "stock"  # where a tool looks at more than one
HERE: Final = Path(__file__).parent
USED: Final = frozenset({"customer", "purchase", "job", "names"})
VIEWS: Final = frozenset({"names"})
NOTHING: Final = frozenset[str]()
SCHEMA: Final = (
    "CREATE TABLE customer (id BIGINT PRIMARY KEY, name VARCHAR(40) NOT NULL, doc JSON)",
    "CREATE TABLE purchase (id BIGINT AUTO_INCREMENT PRIMARY KEY, customer_id BIGINT, total DECIMAL(9, 2),"
    " FOREIGN KEY (customer_id) REFERENCES customer (id))",
    "CREATE VIEW names AS SELECT id, name FROM customer",
    message_table("job", columns="payload VARCHAR(40)"),
    "INSERT INTO customer VALUES (1, 'Ana', '{\"a\": 1}'), (2, 'Bö', NULL)",
    "INSERT INTO purchase (customer_id, total) VALUES (1, 9.5), (2, 10)",
    "INSERT INTO job (id, payload) VALUES (1, 'one'), (2, 'two')",
)
# No tool has to show any of these, nor may it.
OURS: Final = re.compile(r"streamfrom_|streamfrom\.|\bmembers\b|\bdecisions\b")


@dataclass(frozen=True, slots=True)
class Step:
    """One command.

    name: what the base line calls it.
    command: its words, as a shell takes them apart; `{jdbc}` and the like are filled in.
    tables: those that are there afterwards, views among them.
    prints: a pattern that its output holds.
    fails: whether the tool refuses, which is no fault here.
    """

    name: str
    command: str
    tables: frozenset[str]
    prints: str = ""
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    steps: of what is there before, an empty keyspace or `USED`; the commands in their order.
    environ: variables of its commands.
    """

    name: str
    version: str
    fetch: Callable[[Path], Path]
    steps: Callable[[frozenset[str]], Iterator[Step]]
    environ: Mapping[str, str] = field(default_factory=dict)

    def suite(self) -> Suite:
        """Return the suite that runs this tool on both families of servers."""
        families = (Family.MARIADB, Family.MYSQL)
        return Suite(
            self.name, self.version, families, (DATABASE, OTHER), self.fetch, self._run
        )

    def _run(self, run: Run) -> Outcomes:
        outcomes: dict[str, Outcome] = {}
        with run.log.open("w") as log, tempfile.TemporaryDirectory() as scratch:
            for name, before in (("empty", frozenset[str]()), ("used", USED)):
                _prepare(run.port, SCHEMA if before else ())
                fault = ""
                for step in self.steps(before):
                    # What follows a failed step has another schema before it than it is written for.
                    fault = fault or self._fault(step, run, Path(scratch) / name)
                    log.write(f"--- {name}: {step.name}: {fault or 'passed'}\n")
                    end = Outcome.FAILED if fault else Outcome.PASSED
                    outcomes[f"{name}: {step.name}"] = end
        return outcomes

    def _fault(self, step: Step, run: Run, scratch: Path) -> str:
        """Return what is wrong with a step, nothing if it does what it should."""
        scratch.mkdir(exist_ok=True)
        driver = "mariadb" if run.family is Family.MARIADB else "mysql"
        known = {
            "fetched": run.suite_folder,
            "here": HERE,
            "scratch": scratch,
            "port": run.port,
            "database": DATABASE,
            "jdbc": f"jdbc:{driver}://{HOST}:{run.port}/{DATABASE}",
        }
        own = {"PORT": str(run.port), "DATABASE": DATABASE, "DIALECT": "mysql"}
        own |= {name: value.format(**known) for name, value in self.environ.items()}
        done = subprocess.run(
            [word.format(**known) for word in shlex.split(step.command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=scratch,
            env=os.environ | own,
            timeout=STEP_S,
            check=False,
        )
        found = _tables(run.port)
        if (done.returncode != 0) is not step.fails:
            return f"exit code {done.returncode}: {done.stdout[-3000:]}"
        if not re.search(step.prints, done.stdout) or OURS.search(done.stdout):
            return f"prints otherwise: {done.stdout[-3000:]}"
        if found != step.tables:
            return f"leaves {sorted(found)}, not {sorted(step.tables)}: {done.stdout[-3000:]}"
        return ""


def _connect(port: int, **more: Any) -> "pymysql.Connection[Any]":
    return pymysql.connect(host=HOST, port=port, user="root", autocommit=True, **more)


def _prepare(port: int, statements: Sequence[str]) -> None:
    """Make the databases anew, the first with what *statements* make in it."""
    with _connect(port) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {OTHER}.part")
        cursor.execute(f"CREATE TABLE {OTHER}.part (id INT PRIMARY KEY, word VARCHAR(40))")
        cursor.execute(f"INSERT INTO {OTHER}.part (id, word) VALUES (1, 'bolt')")
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {DATABASE}")
        for sql in statements:
            cursor.execute(sql)


def _tables(port: int) -> frozenset[str]:
    sql = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}'"
    with _connect(port) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return frozenset(name for (name,) in cursor.fetchall())


def _each(command: str, *steps: Any) -> Iterator[Step]:
    """Return the steps of one *command*: `{step}` in it is what each begins with."""
    for words, *expected in steps:
        yield Step(words, command.replace("{step}", words), *expected)


def _flyway(before: frozenset[str]) -> Iterator[Step]:
    done = before | {"item", "flyway_schema_history"}
    return _each(
        "java -cp {fetched}/* {here}/Migrate.java {step} {jdbc} {here}/flyway",
        *([("migrate", before, "non-empty schema", True)] if before else []),
        ("baseline" if before else "migrate", done, "1 executed"),
        ("validate", done),
        ("info", done, "item SUCCESS"),
        ("clean", NOTHING),
    )


def _liquibase(before: frozenset[str]) -> Iterator[Step]:
    done = before | {"item", "DATABASECHANGELOG", "DATABASECHANGELOGLOCK"}
    log = "--changelog-file=changelog.sql"
    reference = "--reference-url={jdbc} --reference-username=root"
    return _each(
        "java -cp {fetched}/* liquibase.integration.commandline.LiquibaseCommandLine"
        " --search-path={here} --log-level=warning {step} --url={jdbc} --username=root",
        (f"update {log}", done, "successful"),
        ("tag --tag=one", done),
        (f"status {log}", done, "is up to date"),
        (f"diff {reference}", done, r"Missing Table\(s\): NONE"),
        (f"rollback-count {log} --count=1", done - {"item"}),
        ("drop-all", NOTHING),
    )


def _golang_migrate(before: frozenset[str]) -> Iterator[Step]:
    own = before | {"schema_migrations"}
    return _each(
        "{fetched} -path {here}/migrations -database mysql://root@tcp(127.0.0.1:{port})/{database} {step}",
        ("up", own | {"item"}, "1/u item"),
        ("version", own | {"item"}, "^1"),
        ("down -all", own, "1/d item"),
        ("force 7", own),
        # It drops tables one by one, in any order, and views not at all: where one refers to another it fails on either way.
        *([] if before else [("drop -f", NOTHING)]),
    )


def _sequelize(before: frozenset[str]) -> Iterator[Step]:
    done = before | {"item"}
    shown = ("describe", done, "item id,name,createdAt")
    return _each(
        "node {here}/sequelize.js {step}", ("sync", done), shown, ("drop", before & VIEWS)
    )


def _typeorm(before: frozenset[str]) -> Iterator[Step]:
    done = before | {"item"}
    shown = ("describe", done, "item id int,name varchar")
    return _each(
        "node {here}/typeorm.js {step}", ("synchronize", done), shown, ("drop", NOTHING)
    )


def _django(before: frozenset[str]) -> Iterator[Step]:
    own = "django_migrations django_content_type auth_permission auth_group auth_user"
    own += " auth_group_permissions auth_user_groups auth_user_user_permissions"
    done = before | set(own.split())
    models = "".join(f"(?s:.*)class {name}\\b" for name in ("Customer", "Job", "Purchase"))
    return _each(
        "{fetched} -m django {step}",
        ("inspectdb", before, models if before else r"models\s*$"),
        ("migrate --verbosity=0", done),
        ("sqlflush", done, "auth_user"),
        ("flush --noinput", done),
    )


def _mydumper(before: frozenset[str]) -> Iterator[Step]:
    where = "--host=127.0.0.1 --port={port} --user=root --database={database}"
    # What it finds of ours it writes into a file of that name.
    names = "ls {scratch}/dump | grep -o 'shop[.].*-schema.sql' | cut -d. -f2 | cut -d- -f1 | sort -u | xargs"
    yield from _each(
        "{fetched}/usr/bin/{step} " + where,
        ("mydumper --outputdir={scratch}/dump", before),
        ("myloader --directory={scratch}/dump --overwrite-tables", before),
        ("mydumper --outputdir={scratch}/again", before),
    )
    yield Step("files", f'sh -c "{names}"', before, f"^{' '.join(sorted(before))}$")
    yield Step("diff", "diff -r -x metadata {scratch}/dump {scratch}/again", before, "^$")


def _active_record(before: frozenset[str]) -> Iterator[Step]:
    shown = "".join(f'(?s:.*)create_table "{name}"' for name in sorted(before - VIEWS))
    made = before | {"schema_migrations", "ar_internal_metadata"}
    return _each(
        "{here}/inside.sh {fetched} ruby3.1 {here}/active_record.rb {step}",
        ("dump", before, shown),
        ("load", made),
        ("truncate", made),
    )


def _phpmyadmin(before: frozenset[str]) -> Iterator[Step]:
    if before:
        pages = f"{sys.executable} {{here}}/pages.py {{fetched}}"
        yield Step("pages", pages, before, r"^\d+ pages$")


def _debian(*packages: str, needs_root: bool = True) -> Callable[[Path], Path]:
    return lambda cache: debian_tree(cache, *packages, needs_root=needs_root)


def _inspectdb(cache: Path) -> Path:
    return python_with(cache, "inspectdb", ("Django==5.2.19", "PyMySQL[rsa]==1.2.4"))


MIGRATE: Final = "github.com/golang-migrate/migrate/v4/cmd/migrate"
MYSQL2: Final = "mysql2@3.24.6"
OF_DEBIAN: Final = "of Debian"
FETCHED: Final = {"NODE_PATH": "{fetched}"}
SETTINGS: Final = {"PYTHONPATH": "{here}", "DJANGO_SETTINGS_MODULE": "django_database"}
LIBRARIES: Final = {"LD_LIBRARY_PATH": "{fetched}/usr/lib/x86_64-linux-gnu"}
TOOLS: Final = (
    Tool("flyway", "10.22.0", java_libraries(HERE / "pom.xml"), _flyway),
    Tool("liquibase", "4.30.0", java_libraries(HERE / "pom.xml"), _liquibase),
    Tool("golang-migrate", "4.18.2", go_program(MIGRATE, "4.18.2", "mysql"), _golang_migrate),
    Tool("sequelize", "6.37.8", node_modules("sequelize", ("sequelize@6.37.8", MYSQL2)), _sequelize, FETCHED),
    Tool("typeorm", "0.3.31", node_modules("typeorm", ("typeorm@0.3.31", MYSQL2)), _typeorm, FETCHED),
    Tool("django-inspectdb", "5.2.19", _inspectdb, _django, SETTINGS),
    Tool("mydumper", OF_DEBIAN, _debian("mydumper", needs_root=False), _mydumper, LIBRARIES),
    Tool("active-record", OF_DEBIAN, _debian("ruby-activerecord", "ruby-mysql2"), _active_record),
    Tool("phpmyadmin", OF_DEBIAN, _debian("phpmyadmin", "php-cli", "php-mysql", "php-mbstring"), _phpmyadmin),
)  # fmt: skip
SUITES: Final = tuple(tool.suite() for tool in TOOLS)
