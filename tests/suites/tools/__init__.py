"""Tools that look at a whole schema: migrations, dumps, ORMs, each on an empty keyspace and on a used one.

A tool is a list of steps. A step is a command that ends with exit code 0, prints what it should and leaves exactly
the tables that it should: what it found of ours would be one too many. The base line says that each holds direct as well.
"""

import os
import re
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
    command: its words; `{url}` and the like are filled in.
    tables: those that are there afterwards, views among them.
    prints: a pattern that its output holds.
    fails: whether the tool refuses, which is no fault here.
    """

    name: str
    command: Sequence[str]
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
            [word.format(**known) for word in step.command],
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
    asked = (
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}'"
    )
    with _connect(port) as connection, connection.cursor() as cursor:
        cursor.execute(asked)
        return frozenset(name for (name,) in cursor.fetchall())


def _flyway(before: frozenset[str]) -> Iterator[Step]:
    def step(
        name: str, tables: frozenset[str], prints: str = "", *, fails: bool = False
    ) -> Step:
        java = (
            "java", "-cp", "{fetched}/*", "{here}/Migrate.java", name, "{jdbc}", "{here}/flyway",
        )  # fmt: skip
        return Step(name, java, tables, prints, fails)

    done = before | {"item", "flyway_schema_history"}
    if before:
        yield step("migrate", before, "non-empty schema", fails=True)
        yield step("baseline", done, "1 executed")
    else:
        yield step("migrate", done, "1 executed")
    yield step("validate", done)
    yield step("info", done, "item SUCCESS")
    yield step("clean", frozenset())


def _liquibase(before: frozenset[str]) -> Iterator[Step]:
    def step(name: str, tables: frozenset[str], *more: str, prints: str = "") -> Step:
        main = (
            "java",
            "-cp",
            "{fetched}/*",
            "liquibase.integration.commandline.LiquibaseCommandLine",
        )
        where = (
            "--search-path={here}", "--log-level=warning", name, "--url={jdbc}", "--username=root",
        )  # fmt: skip
        return Step(name, (*main, *where, *more), tables, prints)

    own = {"DATABASECHANGELOG", "DATABASECHANGELOGLOCK"}
    done = before | own | {"item"}
    log = "--changelog-file=changelog.sql"
    yield step("update", done, log, prints="successful")
    yield step("tag", done, "--tag=one")
    yield step("status", done, log, prints="is up to date")
    yield step(
        "diff",
        done,
        "--reference-url={jdbc}",
        "--reference-username=root",
        prints=r"Missing Table\(s\): NONE",
    )
    yield step("rollback-count", done - {"item"}, log, "--count=1")
    yield step("drop-all", frozenset())


def _golang_migrate(before: frozenset[str]) -> Iterator[Step]:
    def step(name: str, tables: frozenset[str], *more: str, prints: str = "") -> Step:
        address = "mysql://root@tcp(127.0.0.1:{port})/{database}"
        words = ("{fetched}", "-path", "{here}/migrations", "-database", address, name, *more)
        return Step(f"{name} {' '.join(more)}".strip(), words, tables, prints)

    own = {"schema_migrations"}
    yield step("up", before | own | {"item"}, prints="1/u item")
    yield step("version", before | own | {"item"}, prints="^1")
    yield step("down", before | own, "-all", prints="1/d item")
    yield step("force", before | own, "7")
    # It drops tables one by one, in any order, and views not at all: where one refers to another it fails on either way.
    if not before:
        yield step("drop", frozenset(), "-f")


def _node(script: str, names: Mapping[str, tuple[frozenset[str], str]]) -> Iterator[Step]:
    for name, (tables, prints) in names.items():
        yield Step(name, ("node", "{here}/" + script, name), tables, prints)


def _sequelize(before: frozenset[str]) -> Iterator[Step]:
    done = before | {"item"}
    left = before & VIEWS
    names = {
        "sync": (done, ""),
        "describe": (done, "item id,name,createdAt"),
        "drop": (left, ""),
    }
    return _node("sequelize.js", names)


def _typeorm(before: frozenset[str]) -> Iterator[Step]:
    done = before | {"item"}
    shown = "item id int,name varchar"
    names = {
        "synchronize": (done, ""),
        "describe": (done, shown),
        "drop": (frozenset[str](), ""),
    }
    return _node("typeorm.js", names)


def _django(before: frozenset[str]) -> Iterator[Step]:
    def step(name: str, tables: frozenset[str], *more: str, prints: str = "") -> Step:
        return Step(name, ("{fetched}", "-m", "django", name, *more), tables, prints)

    added = {"django_migrations", "django_content_type", "auth_permission", "auth_group"}
    added |= {
        "auth_user", "auth_group_permissions", "auth_user_groups", "auth_user_user_permissions",
    }  # fmt: skip
    models = "".join(f"(?s:.*)class {name}\\b" for name in ("Customer", "Job", "Purchase"))
    yield step("inspectdb", before, prints=models if before else r"models\s*$")
    yield step("migrate", before | added, "--verbosity=0")
    yield step("sqlflush", before | added, prints="auth_user")
    yield step("flush", before | added, "--noinput")


def _mydumper(before: frozenset[str]) -> Iterator[Step]:
    def step(program: str, tables: frozenset[str], *more: str) -> Step:
        where = (
            "--host=127.0.0.1", "--port={port}", "--user=root", "--database={database}", *more,
        )  # fmt: skip
        name = " ".join((program, *more)).replace("{scratch}/", "")
        return Step(name, ("{fetched}/usr/bin/" + program, *where), tables)

    # What it finds of ours it writes into a file of that name.
    names = " ".join(sorted(before))
    shown = (
        "sh",
        "-c",
        "ls {scratch}/dump | grep -o 'shop[.].*-schema.sql' | cut -d. -f2 | cut -d- -f1 | sort -u | xargs",
    )
    yield step("mydumper", before, "--outputdir={scratch}/dump")
    yield Step("files", shown, before, f"^{names}$")
    yield step("myloader", before, "--directory={scratch}/dump", "--overwrite-tables")
    yield step("mydumper", before, "--outputdir={scratch}/again")
    yield Step(
        "diff",
        ("diff", "-r", "-x", "metadata", "{scratch}/dump", "{scratch}/again"),
        before,
        "^$",
    )


def _active_record(before: frozenset[str]) -> Iterator[Step]:
    def step(name: str, tables: frozenset[str], prints: str = "") -> Step:
        ruby = ("{here}/inside.sh", "{fetched}", "ruby3.1", "{here}/active_record.rb", name)
        return Step(name, ruby, tables, prints)

    shown = "".join(f'(?s:.*)create_table "{name}"' for name in sorted(before - VIEWS))
    made = before | {"schema_migrations", "ar_internal_metadata"}
    yield step("dump", before, shown)
    yield step("load", made)
    yield step("truncate", made)


def _phpmyadmin(before: frozenset[str]) -> Iterator[Step]:
    if before:
        pages = (sys.executable, "{here}/pages.py", "{fetched}")
        yield Step("pages", pages, before, r"^\d+ pages$")


TOOLS: Final = (
    Tool("flyway", "10.22.0", java_libraries(HERE / "pom.xml"), _flyway),
    Tool("liquibase", "4.30.0", java_libraries(HERE / "pom.xml"), _liquibase),
    Tool(
        "golang-migrate",
        "4.18.2",
        go_program("github.com/golang-migrate/migrate/v4/cmd/migrate", "4.18.2", "mysql"),
        _golang_migrate,
    ),
    Tool(
        "sequelize",
        "6.37.8",
        node_modules("sequelize", ("sequelize@6.37.8", "mysql2@3.24.6")),
        _sequelize,
        {"NODE_PATH": "{fetched}"},
    ),
    Tool(
        "typeorm",
        "0.3.31",
        node_modules("typeorm", ("typeorm@0.3.31", "mysql2@3.24.6")),
        _typeorm,
        {"NODE_PATH": "{fetched}"},
    ),
    Tool(
        "django-inspectdb",
        "5.2.19",
        lambda cache: python_with(
            cache, "inspectdb", ("Django==5.2.19", "PyMySQL[rsa]==1.2.4")
        ),
        _django,
        {"PYTHONPATH": "{here}", "DJANGO_SETTINGS_MODULE": "django_database"},
    ),
    Tool(
        "mydumper",
        "of Debian",
        lambda cache: debian_tree(cache, "mydumper", needs_root=False),
        _mydumper,
        {"LD_LIBRARY_PATH": "{fetched}/usr/lib/x86_64-linux-gnu"},
    ),
    Tool(
        "active-record",
        "of Debian",
        lambda cache: debian_tree(cache, "ruby-activerecord", "ruby-mysql2"),
        _active_record,
    ),
    Tool(
        "phpmyadmin",
        "of Debian",
        lambda cache: debian_tree(cache, "phpmyadmin", "php-cli", "php-mysql", "php-mbstring"),
        _phpmyadmin,
    ),
)
SUITES: Final = tuple(tool.suite() for tool in TOOLS)
