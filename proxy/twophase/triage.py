"""How to deal with prepared branches and kept decisions, by the state of all shards. Pure.

A branch is resolved once it has been prepared for a while. The wait only spares a proxy that is at
work on it: the outcome is read from the transaction's first shard (`proxy.twophase.decisions`) and is
the same for every reader. A decision is forgotten once none of its branches has been prepared
anywhere for a long while. That wait covers servers that crash: a branch whose commit was under way
may be prepared again when its server is back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from streamfrom.proxy.twophase.xid import GlobalId, Xid


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of one shard."""

    # The prepared branches on the shard's server, which may hold other shards as well.
    prepared: frozenset[Xid]
    # The transactions in its decision table, each with the tables of the other branches.
    decided: Mapping[GlobalId, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Findings:
    """The work to do."""

    # Branches to finish, each with the table of a shard that has it.
    resolve: tuple[tuple[str, Xid], ...]
    forget: tuple[GlobalId, ...]  # transactions whose decision is no longer needed
    # Branches whose decision is on a shard that this proxy does not serve; each branch is listed once.
    strangers: tuple[Xid, ...]


@dataclass(slots=True, kw_only=True)
class Triage:
    """Remembers for how long each branch has been prepared, and each decision not needed."""

    grace_s: float  # how long a branch stays prepared before another proxy finishes it
    quiet_s: float  # how long no branch must have been seen before a decision is forgotten
    _prepared_since_s: dict[Xid, float] = field(default_factory=dict)
    _quiet_since_s: dict[GlobalId, float] = field(default_factory=dict)
    _told: set[Xid] = field(default_factory=set)

    def look(
        self,
        now_s: float,
        seen: Mapping[str, Seen],
        *,
        known: Collection[str],
        live: Collection[GlobalId],
    ) -> Findings:
        """Process the state of the shards at *now_s*, and return the resulting work.

        seen: by the id of the shard's decision table; shards that did not answer are missing.
        known: the ids of all tables that this proxy may query, reached this time or not.
        live: transactions that this proxy is committing itself.
        """
        places = {xid: table for table, shard in seen.items() for xid in shard.prepared}
        self._prepared_since_s = {xid: self._prepared_since_s.get(xid, now_s) for xid in places}
        ripe = [
            xid
            for xid, since_s in self._prepared_since_s.items()
            # The grace spares the proxy at work; the outcome would be the same without it.
            if now_s - since_s >= self.grace_s and xid.whole not in live
        ]
        strangers = {xid for xid in ripe if xid.whole.table not in known}
        # Once for each branch, and not at every look.
        news = strangers - self._told
        self._told = strangers
        return Findings(
            tuple((places[xid], xid) for xid in ripe if xid not in strangers),
            self._forgettable(now_s, seen, live),
            tuple(sorted(news, key=str)),
        )

    def _forgettable(
        self, now_s: float, seen: Mapping[str, Seen], live: Collection[GlobalId]
    ) -> tuple[GlobalId, ...]:
        prepared = {xid.whole for shard in seen.values() for xid in shard.prepared}
        self._quiet_since_s = {
            whole: self._quiet_since_s.get(whole, now_s)
            for shard in seen.values()
            for whole, branches in shard.decided.items()
            # A shard that does not answer may have one.
            if whole not in live and whole not in prepared and branches <= seen.keys()
        }
        return tuple(
            whole
            for whole, since_s in self._quiet_since_s.items()
            if now_s - since_s >= self.quiet_s
        )
