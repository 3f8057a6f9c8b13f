"""The engine: which message goes to whom, and when.

It promises that every message whose INSERT was committed is delivered until it is acked, that
nothing is sent after its ack was seen, and that two proxies never send the same attempt.
It opens no socket: databases are behind `store.Store`, consumers behind `types.Receiver`.

Read in this order:

* ``types``, ``comment``, ``message_table``: a message's key, a table and its settings;
* ``backoff``: how long an unacked message waits;
* ``poll``, ``store``: every SQL statement, as conversations without I/O;
* ``lanes``, ``cache``: the keys due soonest of one shard;
* ``events``, ``shard_state``, ``table_state``: the scheduler of a table,
  ``handle(event, now) -> actions``;
* ``runner``, ``purger``, ``registry``: the thin shell that carries the actions out;
* ``keyspace``, ``vindex``, ``multicol``, ``unicode_weights``, ``vschema``: which shard a value lives on;
* ``sequences``: ids that are unique over all shards;
* ``testing``: a store in memory.

May import sqlparse_ext; must not import proxy. Only runner, purger, registry and testing know
asyncio, only clock the time.
"""
