"""Runs coroutine tests on virtual time, each on a new loop."""

from tests.virtual_loop import VirtualLoop


def pytest_asyncio_loop_factories():
    return {"virtual": VirtualLoop}
