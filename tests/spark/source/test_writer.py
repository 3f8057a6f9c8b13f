"""What is refused before any server is asked; the writing is `test_batch_db.py`."""

import pytest
from pyspark.sql.types import StructType

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.source.options import Options
from streamfrom.spark.source.writer import plan_of


def test_only_adding_and_only_where_the_vindex_says():
    nowhere = Endpoint("127.0.0.1", 1, "u", "ks")
    with pytest.raises(RequestError, match="messages are only added"):
        plan_of(Options(nowhere, "t"), StructType(), overwrite=True)
    with pytest.raises(RequestError, match="shards is for reading"):
        plan_of(Options(nowhere, "t", ("-80",)), StructType(), overwrite=False)
