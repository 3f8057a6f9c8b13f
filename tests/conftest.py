"""The plugins of the suite, and hypothesis without a clock."""

import gc

import pytest
from hypothesis import settings


# A deadline for each example says how busy the machine is, not what the code does.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

pytest_plugins = (
    "tests.fixtures.database_servers",
    "tests.fixtures.running_proxy",
    "tests.fixtures.streams",
    "tests.fixtures.load",
    "tests.fixtures.terminal",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep what is collected, which stays, out of all walks of the garbage collector."""
    gc.collect()
    gc.freeze()
