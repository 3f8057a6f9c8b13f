"""The planner's results: plans, and the routes of statements."""

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
        """The shard, as a tuple like other routes'."""
        return (self.shard,)


class AnyShard(OneShard):
    """A statement for which every shard gives the same answer; `shard` is the first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Concatenate:
    """A SELECT whose answer is the rows of all *shards*, in any order."""

    shards: tuple[Shard, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """A SELECT whose answer must be merged from the rows of all *shards*."""

    shards: tuple[Shard, ...]
    select: Select
    # A group may have rows on several shards; otherwise each row, or group, is on one.
    in_groups: bool
    # Returns the route for a statement whose rows turn out not to be mergeable; None if there is none.
    otherwise: Callable[[Statement], Combine] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Combine:
    """A SELECT whose parts are answered first, each on its own route; then a shard answers the rest."""

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
    # How many rows all parts together may delete; the LIMIT at the end of each text has the same number. None for no limit.
    rows_max: int | None = None
    # For an INSERT … VALUES with RETURNING: for each part, the numbers of its rows among all rows of the statement. Empty
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
    # Returns the route of a statement if *always* is None.
    find: Callable[[Statement], Route] | None = None

    def route(self, statement: Statement) -> Route:
        """Return the route of *statement*. Raises Unsupported and the errors of bad values."""
        if self.always is not None:
            return self.always
        assert self.find is not None
        return self.find(statement)
