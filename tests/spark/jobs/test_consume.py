"""What a consumer says that cannot begin; its options are in `test_job.txt`."""

from pathlib import Path
from typing import Any

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.jobs.consume import ConsumeConfig, run


def test_a_password_is_given_by_its_variable():
    config = ConsumeConfig(
        Endpoint("h", 1, "u", "ks", "secret"), "t", "m:f", Path("c"), Path("o")
    )
    nobody: Any = None
    with pytest.raises(RequestError, match="password_env"):
        run(nobody, config)
