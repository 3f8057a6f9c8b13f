"""The SQL of docs/cookbook.md, as it is printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/cookbook.md"
END_S = 120.0
STATEMENT = re.compile(r"(?P<sql>(?:.|\n)+?);(?:[ \t]+-- gives(?P<gives>.*))?\n")


def statements() -> list[tuple[str, str | None]]:
    """Return each statement of the page with the first column that it gives, None for whatever comes."""
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found = [each for block in blocks for each in STATEMENT.finditer(block)]
    assert "".join(each[0] for each in found) == "".join(blocks), "not all of it is read"
    return [
        (each["sql"], None if each["gives"] is None else each["gives"].strip())
        for each in found
    ]


def test_every_statement_does_what_the_page_says(cluster: SharedCluster) -> None:
    client = cluster.proxy.connect(database="plain", autocommit=True)
    said = statements()
    assert sum(gives is not None for _, gives in said) > 10
    for sql, gives in said:
        with client.cursor() as cursor:
            cursor.execute(sql)
            values = [str(row[0]) for row in cursor.fetchall()]
        if sql.startswith("STREAM"):
            values.sort()  # which of several keys is first nobody promises
        assert gives in (None, ", ".join(values)), sql


def test_the_servers_own_scheduler_sends_the_job_of_every_day(cluster: SharedCluster) -> None:
    (create_queue, create_event, drop_event) = (
        sql
        for sql, _ in statements()
        if re.match(r"\n?CREATE QUEUE report|(CREATE|DROP) EVENT", sql)
    )
    ((before, today),) = cluster.direct("SELECT @@event_scheduler, CURRENT_DATE")
    cluster.direct("SET GLOBAL event_scheduler = ON")
    client = cluster.proxy.connect(database="plain", autocommit=True)
    try:
        with client.cursor() as cursor:
            for sql in (create_queue, create_event):  # whose first turn is at once
                cursor.execute(sql)
            cursor.execute("STREAM day FROM report LIMIT 2 WAIT 60")
            ((day,),) = cursor.fetchall()
            assert day >= today
            cursor.execute(drop_event)
    finally:
        cluster.direct(f"SET GLOBAL event_scheduler = {before}")


def test_the_batch_of_the_examples_ends_with_its_last_step(cluster: SharedCluster) -> None:
    program = [sys.executable, str(ROOT / "examples/batch.py"), "20"]
    place = {"PORT": str(cluster.proxy.port), "USER_NAME": "root", "PASSWORD": ""}
    for _ in range(2):  # the second time there is a queue, and a batch that is done
        answer = subprocess.run(
            program,
            env=os.environ | place,
            capture_output=True,
            text=True,
            timeout=END_S,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        jobs = [line.partition(": ")[2] for line in answer.stdout.splitlines()]
        assert sorted(jobs[:-1]) == sorted(f"part {n} of 20" for n in range(1, 21))
        assert jobs[-1] == "mail the report"
