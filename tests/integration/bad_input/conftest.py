"""Sockets that are closed when their test is over."""

from collections.abc import Iterator

import pytest

from tests.fixtures.running_proxy import RunningProxy
from tests.integration.bad_input.raw_client import OpenRaw, RawClient


@pytest.fixture
def raw() -> Iterator[OpenRaw]:
    opened: list[RawClient] = []

    def raw(proxy: RunningProxy) -> RawClient:
        opened.append(RawClient(proxy))
        return opened[-1]

    yield raw
    for client in opened:
        client.close()
