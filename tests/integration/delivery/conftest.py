"""A message table of the shared proxy with its producer and its first stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest


if TYPE_CHECKING:
    from tests.fixtures.streams import Consume, Consumer
    from tests.integration.conftest import CreateTable, SharedCluster


OpenQueue = Callable[..., "tuple[Any, Consumer]"]


@pytest.fixture
def queue(cluster: SharedCluster, create: CreateTable, consume: Consume) -> OpenQueue:
    """A function that creates `my_message` in a keyspace with the given options.

    It returns an autocommitting connection to write with, and a stream of all columns.
    """

    def queue(keyspace: str, **options: Any) -> tuple[Any, Consumer]:
        create(keyspace, **options)
        producer = cluster.proxy.connect(database=keyspace, autocommit=True)
        return producer, consume(cluster.proxy, database=keyspace)

    return queue
