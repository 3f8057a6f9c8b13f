"""Fake servers, and the rule that nothing fails unseen in the loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.proxy.fake_server import FakeServer


if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def calm() -> AsyncIterator[None]:
    """Fail a test during which a callback or a task of the loop failed."""
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    yield
    assert not faults


@pytest.fixture
async def server(calm: None) -> AsyncIterator[FakeServer]:
    """A MySQL server."""
    async with FakeServer() as fake:
        yield fake


@pytest.fixture
async def other_server(calm: None) -> AsyncIterator[FakeServer]:
    """A second one."""
    async with FakeServer() as fake:
        yield fake
