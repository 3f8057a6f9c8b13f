"""A backend's answer on its way to the client: where it ends, and what must change in it.

Three readers, one for each data path, all fed with chunks as they come from the backend:

* ``Relay`` forwards chunks as they are and reads headers only, to find the end. One shard
  answers and the client has DEPRECATE_EOF, as the backend leg always has.
* ``Resequencer`` renumbers packets and writes EOF packets in or out: for older clients, and
  where several answers follow one another as one.
* ``RowCollector`` gives the rows themselves, for merges.

In every place where a packet may be the last one it is held back until it is whole; all
others pass through even when they are cut. So any cut of the stream gives the same bytes.
"""

from __future__ import annotations

from typing import Any

from proxy.wire.answer import DEPRECATE_EOF, Answer
from proxy.wire.constants import Status
from proxy.wire.relay import Relay
from proxy.wire.resequencer import Resequencer
from proxy.wire.row_collector import RowCollector


__all__ = ["Answer", "Relay", "Resequencer", "RowCollector", "relay_for"]


def relay_for(
    capabilities: int, *, sequence: int = 1, status: int = Status.AUTOCOMMIT, **options: Any
) -> Relay | Resequencer:
    """Return the cheapest reader for one shard's answer to a client with these flags.

    sequence: the number of the answer's first packet. A backend begins with 1, a client may
    expect more: behind a command of 16 MiB, or behind earlier answers to the same command.
    status: flags for the EOF behind the columns, which older clients alone get.
    Further *options* are those that both readers take.
    """
    if capabilities & DEPRECATE_EOF and sequence == 1:
        return Relay(capabilities, **options)
    return Resequencer(capabilities, sequence=sequence, status=status, **options)
