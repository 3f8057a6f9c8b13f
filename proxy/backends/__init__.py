"""The shards' side: connections to servers, their pools, and whether a server can be used.

Read in this order:

* ``session_variables``, ``charsets``: the session variables that follow a client;
* ``statement_ids``: the prepared statements of a connection;
* ``answer_readers``, ``backend``: answers, and the connection that they come on;
* ``connect``, ``pooling``: how a connection is opened, and who gets which of a shard's;
* ``shard``: one server of a shard, and its health;
* ``group_commit``: acks of many clients, written in one transaction;
* ``control_connection``, ``shard_store``: the statements of the proxy and of the engine.
"""
