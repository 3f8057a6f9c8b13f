"""Sharding: which shard a row lives on, as Vitess computes it. Pure, and without messaging.

* ``keyspace``: shards, their key ranges, and targets such as ``ks:-80``;
* ``vschema``: how the tables of a keyspace are sharded;
* ``vindex``: from values to keyspace ids;
* ``sequence_tables``: ids that are unique over all shards.
"""
