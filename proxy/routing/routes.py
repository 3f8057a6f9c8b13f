"""Where a statement runs, as the planner says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Shard
    from streamfrom.sqlparse_ext.selects.inner_selects import InnerSelects, TableRows
    from streamfrom.sqlparse_ext.selects.select_ast import Select
    from streamfrom.sqlparse_ext.statements import Statement


@dataclass(frozen=True, slots=True)
class OneShard:
    """The statement goes to one shard, whose answer is the client's."""

    shard: Shard

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shard, as other routes have them."""
        return (self.shard,)


class AnyShard(OneShard):
    """Every shard would answer alike; `shard` is the first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Concatenate:
    """A SELECT whose answer is the rows of all *shards*, in any order."""

    shards: tuple[Shard, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """A SELECT whose answer must be put together from the rows of all *shards*."""

    shards: tuple[Shard, ...]
    select: Select
    # A group may have rows on several shards; otherwise each row, or group, is whole.
    in_groups: bool
    # Gives the route for a statement whose rows turn out not to be merged; None where there is none.
    otherwise: Callable[[Statement], Combine] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Combine:
    """A SELECT whose parts are answered first, each as its route says; then a shard answers the rest."""

    shards: tuple[Shard, ...]  # all shards that take part; the first one answers the rest
    parts: InnerSelects | TableRows
    # The parts that are answered first, by their numbers; that shard answers the others.
    answered: tuple[tuple[int, Statement, Route], ...]


@dataclass(frozen=True, slots=True)
class WriteParts:
    """A write to several shards that succeeds or fails as one.

    Each part has its own text; None is the statement as the client wrote it.
    """

    parts: tuple[tuple[Shard, bytes | None], ...]
    # The rows that all parts together may delete, as the LIMIT at the end of each text says; None for no limit.
    rows_max: int | None = None
    # Of an INSERT … VALUES with RETURNING, for each part the numbers that its rows have among all rows of the statement; empty
    # for every other write.
    places: tuple[Sequence[int], ...] = ()

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards of the parts."""
        return tuple(shard for shard, _ in self.parts)


Route: TypeAlias = "OneShard | Concatenate | Merge | Combine | WriteParts"


@dataclass(frozen=True, slots=True)
class Plan:
    """How to find the shards of every statement of one shape."""

    always: Route | None = None  # the route of a shape whose values do not matter, else None
    # Returns the route of a statement, where *always* is None.
    find: Callable[[Statement], Route] | None = None

    def route(self, statement: Statement) -> Route:
        """Return where *statement* goes. Raises Unsupported and the errors of bad values."""
        if self.always is not None:
            return self.always
        assert self.find is not None
        return self.find(statement)
