"""The SQL of docs/cookbook.md, as it is printed."""

import re
from pathlib import Path

import pytest

from tests.integration.conftest import SharedCluster


pytestmark = pytest.mark.db

PAGE = Path(__file__).parents[2] / "docs/cookbook.md"
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
            values = ", ".join(str(row[0]) for row in cursor.fetchall())
        assert gives in (None, values), sql
