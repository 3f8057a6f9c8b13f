"""A backend's answer on its way to the client: where it ends, and what must change in it.

Three readers, one for each data path, all fed with chunks as they come from the backend:

* ``PassThrough`` forwards chunks as they are and reads headers only, to find the end. One shard
  answers and the client has DEPRECATE_EOF, as the backend leg always has.
* ``Resequencer`` renumbers packets and writes EOF packets in or out: for older clients, and
  where several answers follow one another as one.
* ``RowCollector`` gives the rows themselves, for merges.

In every place where a packet may be the last one it is held back until it is whole; all
others pass through even when they are cut. So any cut of the stream gives the same bytes.
"""

from __future__ import annotations

from streamfrom.proxy.wire.pass_through import PassThrough
from streamfrom.proxy.wire.resequencer import Resequencer
from streamfrom.proxy.wire.response_reader import DEPRECATE_EOF, AnswerKind
from streamfrom.proxy.wire.row_collector import RowCollector


__all__ = ["DEPRECATE_EOF", "AnswerKind", "PassThrough", "Resequencer", "RowCollector"]
