"""Keyspaces for tests: one with a single shard, one in halves sharded by the number itself.

The vindex `numeric` keeps the tests readable: ids below HIGH live on the first shard.
"""

from __future__ import annotations

import json

from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.engine.sharding.vschema import parse_vschema


HIGH = 1 << 63  # the first id of the second half

VSCHEMA = json.dumps(
    {
        "sharded": True,
        "vindexes": {"numeric": {"type": "numeric"}, "md5": {"type": "binary_md5"}},
        "tables": {
            "t": {"column_vindexes": [{"column": "id", "name": "numeric"}]},
            "msg": {"column_vindexes": [{"column": "id", "name": "numeric"}]},
            "named": {"column_vindexes": [{"column": "name", "name": "md5"}]},
            "ref": {"type": "reference"},
            "pin": {"pinned": "00"},
            "pin_high": {"pinned": "80"},
        },
    }
)

LOW_SHARD, HIGH_SHARD = Shard.named("-80"), Shard.named("80-")

SHARDED = Keyspace("commerce", (LOW_SHARD, HIGH_SHARD), parse_vschema(VSCHEMA, "commerce"))
QUARTERS = Keyspace(
    "quarters",
    tuple(Shard.named(name) for name in ("-40", "40-80", "80-c0", "c0-")),
    parse_vschema(VSCHEMA, "quarters"),
)
PLAIN = Keyspace("plain", (Shard.named("-"),))
