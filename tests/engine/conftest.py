"""Tests that are coroutines run on virtual time, each on a loop of its own."""

from tests.virtual_loop import VirtualLoop


def pytest_asyncio_loop_factories():
    return {"virtual": VirtualLoop}
