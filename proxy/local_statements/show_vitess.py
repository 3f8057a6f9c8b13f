"""`SHOW VITESS_TABLETS`, `VITESS_SHARDS`, `VITESS_TARGET` and `KEYSPACES`, with Vitess's columns and order. Pure.

As in Vitess LIKE chooses, tablets by their host's name, and WHERE does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.proxy.local_statements.like_patterns import like
from streamfrom.proxy.wire.resultset import Table, table_of_texts


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.sqlparse_ext.statements import Shape, Statement


_TABLETS: Final = "VITESS_TABLETS"
_SHARDS: Final = "VITESS_SHARDS"
_TARGET: Final = ("VITESS_TARGET",)
_LISTS: Final = frozenset({_TABLETS, _SHARDS, "KEYSPACES", "VITESS_KEYSPACES"})
_TABLET_COLUMNS: Final = (
    *("Cell", "Keyspace", "Shard", "TabletType"),
    *("State", "Alias", "Hostname", "PrimaryTermStartTime"),
)


class Tablet(NamedTuple):
    """A server of a shard: what Vitess has a tablet in front of.

    Attributes:
        server: where it listens, `host:port` or the path of its socket.
        is_serving: statements are sent to it.
    """

    keyspace: str
    shard: str
    is_primary: bool
    server: str
    host: str
    is_serving: bool


def is_show_vitess(shape: Shape) -> bool:
    """True for the forms that `show_vitess` answers."""
    words = shape.words
    if shape.verb != "SHOW" or not words:
        return False
    return words == _TARGET or words[0] in _LISTS


def show_vitess(
    statement: Statement, keyspaces: Iterable[Keyspace], tablets: Iterable[Tablet], target: str
) -> Table:
    """Return columns and rows for a statement whose shape `is_show_vitess`.

    *keyspaces* and *tablets* are those in the user's sight, *target* is the session's own as the client named it, "" for none.

    There are no cells here, so `Cell` is empty; so is `PrimaryTermStartTime`, as no server shows when it became the primary.
    """
    words = statement.shape.words
    if words == _TARGET:
        return table_of_texts(("Target",), [(target,)])
    chosen = like(statement) if words[1:2] == ("LIKE",) else None
    if words[0] != _TABLETS:
        ordered = sorted(keyspaces, key=lambda keyspace: keyspace.name)
        if words[0] == _SHARDS:
            column = "Shards"
            names = [f"{each.name}/{shard.name}" for each in ordered for shard in each.shards]
        else:
            column, names = "Database", [each.name for each in ordered]
        return table_of_texts(
            (column,), [(name,) for name in names if not chosen or chosen.fullmatch(name)]
        )
    return table_of_texts(
        _TABLET_COLUMNS,
        [
            (
                "",
                tablet.keyspace,
                tablet.shard,
                "PRIMARY" if tablet.is_primary else "REPLICA",
                "SERVING" if tablet.is_serving else "NOT_SERVING",
                tablet.server,
                tablet.host,
                "",
            )
            for tablet in tablets
            if not chosen or chosen.fullmatch(tablet.host)
        ],
    )
