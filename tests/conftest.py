"""The plugins of the suite, the parts it can run without, and hypothesis without deadlines."""

import gc
import os
import sys

import pytest
from hypothesis import settings

from tests.fixtures import absent


# Python images set it, and then each process of each run compiles and rewrites all test modules.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A deadline per example measures the load of the machine, not the code. CI runs a hundred examples, a nightly run a thousand.
settings.register_profile(
    "unhurried", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "25"))
)
settings.load_profile("unhurried")

# Before modules are imported, because some look for programs on import.
absent.hide()

pytest_plugins = (
    "tests.fixtures.database_servers",
    "tests.fixtures.running_proxy",
    "tests.fixtures.streams",
    "tests.fixtures.load",
    "tests.fixtures.programs",
    "tests.fixtures.terminal",
    "tests.fixtures.scheduling",
    "tests.fixtures.ways",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exclude the collected tests, which stay, from garbage collection, and collect rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # as a proxy does
