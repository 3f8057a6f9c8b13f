"""The two shortest configurations: one keyspace, on one server or on two."""

UNSHARDED = """
[[keyspaces.commerce.shards]]
name = "0"
primary = "mysql://root@127.0.0.1"
"""

SHARDED = """
[keyspaces.commerce]
vschema = "vschema.json"
[[keyspaces.commerce.shards]]
name = "-80"
primary = "mysql://root@127.0.0.1:3307"
[[keyspaces.commerce.shards]]
name = "80-"
primary = "mysql://root@127.0.0.1:3308"
"""
