"""Messaging: which message goes to whom, and when.

It promises that every message whose INSERT was committed is delivered until it is acked, that
nothing is sent after its ack was seen, and that two proxies never send the same attempt.
It opens no socket: databases are behind `message_store.Store`, consumers behind `message.Receiver`.

Read in this order:

* ``message``, ``table_settings``, ``message_table``: a message's key, a table and its settings;
* ``table_differences``: what must be equal on all shards;
* ``backoff``: how long an unacked message waits;
* ``conversation``, ``poll``, ``message_store``: every SQL statement, as conversations without I/O;
* ``partitions``, ``partition_store``, ``partition_upkeep``: queues that are partitioned by time, and purged so;
* ``lanes``, ``shard_queue``: the keys due soonest of one shard;
* ``events``, ``shard_state``, ``receivers``, ``sending``, ``held_messages``, ``table_state``: the scheduler of a table,
  ``handle(event, now) -> actions``;
* ``runner``, ``purger``, ``registry``: the thin shell that carries the actions out;
* ``figures``, ``table_figures``, ``depths``, ``watch``: what is counted, and read for whoever watches;
* ``memory_store``: a store in memory, for tests.

Only ``runner``, ``purger``, ``registry``, ``watch`` and ``memory_store`` know asyncio, only ``clock`` the time.
"""
