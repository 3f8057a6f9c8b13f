"""Messaging: which stream gets which message, and when.

It promises that every message whose INSERT was committed is delivered until it is acked, that
nothing is sent after its ack was seen, and that two proxies never send the same attempt.
It opens no socket: databases are behind `table.store_job.Store`, consumers behind `table.message.Receiver`.

Its rooms, from the bottom up; a room imports only from those below it:

* ``store``: statements as conversations without I/O, and rows that a server refuses;
* ``table``: a message's key and ids, a table, its settings, waits and definitions;
* ``streams``, ``queue``, ``gates``: an open stream; a shard's keys that are due soonest; reasons to hold messages back;
* ``leases``: which stream holds which message until when, in memory and in rows;
* ``acks``: acks that are written together;
* ``order``, ``upkeep``: messages that wait for others; purge, partitions, dead letters and looks at messages;
* ``claims``: how due rows are won;
* ``dispatch``: the scheduler of a table, ``handle(event, now) -> actions``;
* ``figures``: the gauges of a table, for monitoring;
* ``shell``: the loop, the clock and the log: it finds the tables and carries the actions out.

Only ``shell`` knows asyncio and logging.
"""
