"""The settings that a seed draws for its world: the table's, and the amount of trouble."""

from __future__ import annotations

import random
from dataclasses import dataclass

from streamfrom.engine.messaging.table.message import AUTO


KEYSPACE, TABLE = "ks", "msg"

# Only these seeds have enough messages to overflow every cache. A handful also shows a fault, at a tenth of the cost.
LARGE = (2, 3)
SMALL = (2, 4, 6, 8, 8, 12, 12, 25)


@dataclass
class Settings:
    """The settings that a seed draws for its world."""

    proxies: int
    shards: tuple[str, ...]
    messages: int
    consumers: int
    ack_wait_s: float
    batch: int
    cache: int
    prefetch: int
    release_after_s: float | None
    poll_s: float
    newest: bool
    failing: float  # the share of calls to the database that fail
    lost_acks: float  # the share of deliveries that no consumer acks
    chaos_s: float  # how long trouble lasts
    max_attempts: int = 0
    max_in_flight: int | None = None
    max_rate: float | None = None
    lease: str = "written"
    ack: str = "committed"
    order: str = ""
    span_keys: int = (
        0  # how many keys a poll of a larger cache reads; 0 for the product's own number
    )

    @property
    def found_s(self) -> float:
        """How long it takes to find rows that were written past the proxies."""
        # For each of two priorities, the reads of never sent rows and of the others may each return less than a full part.
        polls = self.messages // self.span_keys + 8 if self.span_keys else 1
        return polls * self.poll_s

    @classmethod
    def drawn(cls, seed: int, dice: random.Random) -> Settings:
        shards = dice.choice([("0",), ("-80", "80-"), ("-40", "40-80", "80-")])
        messages, chaos_s = dice.randint(20, 120), 60
        if seed not in LARGE:
            messages = dice.choice(SMALL)
            chaos_s = 5 + messages
        return cls(
            proxies=dice.choice([1, 1, 2, 3]),
            shards=shards,
            messages=messages,
            consumers=dice.randint(1, 6),
            ack_wait_s=dice.choice([1, 3, 10]),
            batch=dice.choice([1, 2, 5, 20]),
            cache=dice.choice([1, 2, 5, 20, 1000]),
            prefetch=dice.choice([AUTO, AUTO, 0, 1, 2, 5, 20, 100]),
            release_after_s=dice.choice([None, 0.5, 2, 5]),
            poll_s=dice.choice([1, 5, 20]),
            newest=dice.random() < 0.25,
            failing=dice.choice([0, 0, 0.05, 0.3]),
            lost_acks=dice.choice([0, 0.2, 0.5]),
            chaos_s=chaos_s,
        )

    @property
    def comment(self) -> str:
        return (
            f"vitess_message,vt_ack_wait={self.ack_wait_s},vt_purge_after=100000,"
            f"vt_batch_size={self.batch},vt_cache_size={self.cache},"
            f"vt_prefetch={'auto' if self.prefetch == AUTO else self.prefetch},"
            f"vt_release_after={self.release_after_s or 'never'},"
            f"vt_poller_interval={self.poll_s},vt_max_backoff={4 * self.ack_wait_s}"
            + (",vt_order=newest" if self.newest else "")
            + f",vt_lease={self.lease},vt_ack={self.ack}"
            + (f",vt_max_attempts={self.max_attempts}" if self.max_attempts else "")
            + (f",vt_max_in_flight={self.max_in_flight}" if self.max_in_flight else "")
            + (f",vt_max_rate={self.max_rate}" if self.max_rate else "")
            + self.order
        )
