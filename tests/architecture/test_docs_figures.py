"""What documents say twice with the code: defaults, limits and time-outs, commands and their options."""

import contextlib
import io
import pkgutil
import re
import tomllib
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from bench.__main__ import ALL as WORKLOADS
from streamfrom.proxy import cli
from streamfrom.proxy.config.file import ConfigError, load
from streamfrom.proxy.status.status_rows import TABLES
from tests.cases import cases
from tests.release.reference import PACKAGES, made, repository, with_links


ROOT = Path(__file__).parents[2]
KEYSPACE = '[keyspaces.k]\n[[keyspaces.k.shards]]\nname = "-"\nprimary = "mysql://u@h/d"\n'
COMMAND = re.compile(r"^(?:\$ )?(streamfrom(?:-spark)?) (\S.*)$")


def text_of(document: str) -> str:
    return (ROOT / document).read_text()


def key_table(document: str, first: str) -> dict[str, str]:
    """Return key and default of each row of the table of keys that begins with *first*."""
    rows: dict[str, str] = {}
    for line in text_of(document).splitlines():
        match = re.match(r"\| `(\w+)` \| ", line)
        if match and (rows or match[1] == first):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            rows[match[1]] = cells[-2]
        elif rows:
            break
    assert rows, f"no table of keys begins with {first}"
    return rows


def expected_keys(tmp_path: Path, faulty: str) -> set[str]:
    """Return the keys that the loader knows where *faulty* has one that it does not."""
    path = tmp_path / "faulty.toml"
    path.write_text(faulty)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    listed = str(caught.value).partition("expected one of ")[2].partition(" (")[0]
    return set(listed.split(", "))


@pytest.mark.parametrize(
    ("first", "faulty", "elsewhere"),
    [
        ("listen", f"[server]\nqqqq = 1\n{KEYSPACE}", {"tls"}),
        ("cert", f'[server.tls]\ncert = "dev"\nkey = "dev"\nqqqq = 1\n{KEYSPACE}', set()),
        ("name", f'[[users]]\nname = "a"\npassword = "b"\nqqqq = 1\n{KEYSPACE}', set()),
        ("vschema", "[keyspaces.k]\nqqqq = 1\n" + KEYSPACE.partition("\n")[2], {"shards"}),
    ],
)
def test_the_manual_has_every_key_of_a_table_and_no_other(tmp_path, first, faulty, elsewhere):
    (tmp_path / "dev").touch()
    known = expected_keys(tmp_path, faulty)
    assert set(key_table("docs/operations/configuration.md", first)) == known - elsewhere


def test_defaults_in_the_manual_are_what_an_empty_configuration_gets(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(KEYSPACE)
    server = load(path, {}).server
    checked = 0
    for key, default in key_table("docs/operations/configuration.md", "listen").items():
        number = re.match(r"(\d+)\b", default)
        if number is None:
            continue
        names = (key, f"{key}_s", f"{key}_bytes")
        (found,) = [getattr(server, name) for name in names if hasattr(server, name)]
        assert found == float(number[1]), key
        checked += 1
    assert checked >= 15
    defaults = key_table("docs/operations/configuration.md", "listen")
    assert defaults["listen"] == f'`"{server.host}:{server.port}"`'
    assert defaults["unix_socket_mode"] == f'`"{server.unix_socket_mode:04o}"`'
    assert defaults["transaction_mode"] == f'`"{server.transaction_mode}"`'
    assert defaults["max_logins_per_address"] == "half of `max_connections`"
    assert server.max_logins_per_address == server.max_connections // 2
    assert defaults["user_memory"] == "four times `connection_memory`"
    assert server.user_memory_bytes == 4 * server.connection_memory_bytes


def test_the_manual_has_the_columns_of_the_status_tables_and_no_other():
    tables = text_of("docs/sql/show.md").split("| column | meaning |")[1:]
    described = [
        set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \| ", rows, re.MULTILINE))))
        for rows in (table.partition("\n\n")[0] for table in tables)
    ]
    for columns in TABLES.values():
        names = {column.name for column in columns}
        assert min(described, key=lambda each: len(each ^ names)) == names
    assert len(described) == len(TABLES)


NUMBERS = {"three": 3, "two": 2, "four": 4, "a minute": 60, "once a second": 1}


def constant(text: str) -> float:
    """Return the value of a name of the code, times a factor."""
    name, _, factor = text.partition(" x ")
    found = pkgutil.resolve_name(name)
    return float((found[0] if isinstance(found, tuple) else found) * Fraction(factor or 1))


@cases(document=str, sentence=str, values=str)
def test_a_figure_that_stands_in_a_document_is_that_of_the_code(document, sentence, values):
    found = re.search(sentence.replace(" ", r"\s+"), text_of(document))
    assert found, sentence
    told = [NUMBERS.get(group) or float(group.replace(",", "")) for group in found.groups()]
    assert told == pytest.approx([constant(value) for value in values.split(", ")])


def test_the_tables_of_the_reference_are_those_of_the_code():
    pages = [p for p in (ROOT / "docs").rglob("*.md") if "<!-- reference" in p.read_text()]
    assert len(pages) >= 2
    assert [path for path in pages if made(path.read_text()) != path.read_text()] == []


@pytest.mark.parametrize("path", PACKAGES)
def test_one_line_gives_the_packages_their_links(path):
    text = path.read_text()
    assert with_links(text, repository()) == text
    linked = with_links(text, "https://git.example/it")
    assert tomllib.loads(linked)["project"]["urls"] == {
        "Source": "https://git.example/it",
        "Issues": "https://git.example/it/issues",
        "Changelog": "https://git.example/it/blob/main/docs/changelog.md",
    }
    assert with_links(linked, repository()) == text


def test_every_workload_that_the_documents_run_exists():
    named = re.findall(r"\./dev bench((?: (?!--)[a-z_]+)+)", text_of("docs/benchmarks.md"))
    assert {name for names in named for name in names.split()} - set(WORKLOADS) == set()
    assert len(named) > 1


def documented_commands() -> list[tuple[str, str, str]]:
    """Return document, program and the rest of each command line in the documents."""
    found = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if path.name == "changelog.md":
            continue
        text = path.read_text().replace("\\\n", " ")
        fenced = [line for block in text.split("```")[1::2] for line in block.splitlines()]
        inline = re.findall(r"`([^`\n]+)`", "".join(text.split("```")[::2]))
        found += [
            (path.name, match[1], match[2])
            for line in (*fenced, *inline)
            if (match := COMMAND.match(line))
        ]
    return found


def help_of(program: str, command: str) -> str:
    main: Callable[[Sequence[str]], int] = cli.main
    if program == "streamfrom-spark":
        from streamfrom.spark.command import run_command

        main = run_command
    written = io.StringIO()
    with contextlib.redirect_stdout(written), pytest.raises(SystemExit):
        main([command, "--help"])
    return written.getvalue()


@pytest.mark.parametrize("program", ["streamfrom", "streamfrom-spark"])
def test_commands_and_options_in_the_documents_exist(program):
    commands: tuple[str, ...] = cli.COMMANDS
    if program == "streamfrom-spark":
        pytest.importorskip("pyspark")
        from streamfrom.spark.jobs import JOBS

        commands = (*JOBS, "package")
    lines = [each for each in documented_commands() if each[1] == program]
    assert len(lines) > 5
    for document, _, rest in lines:
        named = [word for word in rest.split() if word in commands]
        options = set(re.findall(r"(?<!\S)\[?(--[a-z][a-z-]*)", rest))
        if named:
            told = help_of(program, named[0])
            strays = [option for option in options if option not in told]
            assert not strays, (document, rest)
        else:
            known = r"JOB\b|--(help|version|verbose|print-completion \w+)\b"
            assert re.match(known, rest), (document, rest)
