"""The name that users write; what is behind it is tested with real shards beside this."""

import re
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from streamfrom.spark.errors import RequestError
from streamfrom.spark.source import MessageSource
from streamfrom.spark.source.options import OPTIONS


def test_it_is_called_streamfrom_and_its_page_names_the_options():
    assert MessageSource.name() == "streamfrom"
    page = Path(__file__).parents[3] / "docs" / "spark" / "source.md"
    assert re.findall(r"^\| `(\w+)` \|", page.read_text(), re.MULTILINE)[: len(OPTIONS)] == [
        *OPTIONS
    ]


def test_a_stream_that_cannot_be_says_why_when_it_is_first_asked():
    """What is raised any earlier, Spark replaces with an error of its own."""
    options = {"proxy": "mysql://me@db:1/ks", "table": "t", "where": "id = 1"}
    reader = MessageSource(options).streamReader(StructType())
    with pytest.raises(RequestError, match="option where is for"):
        reader.initialOffset()
    with pytest.raises(RequestError, match="option where is for"):
        reader.partitions({}, {})
