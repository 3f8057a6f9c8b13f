"""The plugins of the suite, what it does without, and hypothesis without a clock."""

import gc
import os
import sys

import pytest
from hypothesis import settings

from tests.fixtures import absent


# Images of Python set it, and then each process of each run compiles and rewrites all test modules anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A deadline for each example says how busy the machine is, not what the code does. CI has a hundred examples, a nightly run a thousand.
settings.register_profile(
    "unhurried", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "25"))
)
settings.load_profile("unhurried")

# Before the modules that look for programs when they are imported.
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
    """Keep what is collected, which stays, out of all walks of the garbage collector, and have few of these."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # as a proxy does
