"""More clients than connections, and an id for each of the two shards."""

import random
from collections.abc import Iterator
from typing import Any

from tests.fixtures.running_proxy import RunningProxy


CLIENTS = 8
LOW, HIGH = 1, 4


def crowd(proxy: RunningProxy, count: int = CLIENTS, **options: Any) -> list[Any]:
    return [
        proxy.connect(**{"database": "plain", "autocommit": True} | options)
        for _ in range(count)
    ]


def shuffled_rounds(clients: list[Any], rounds: int) -> Iterator[int]:
    dice = random.Random(7)
    for _ in range(rounds):
        order = list(range(len(clients)))
        dice.shuffle(order)
        yield from order
