"""The shards' side: connections to servers, their pools, and whether a server can be used.

Read in this order:

* ``session_variables``, ``charsets``: the session variables that follow a client;
* ``statement_ids``, ``diagnostics_area``: what else a connection knows of its session;
* ``answer_readers``, ``backend``: answers, and the connection that they come on;
* ``connect``, ``connection_handover``: how a connection comes to be, and how it becomes another session's;
* ``pool``, ``shard``: all connections of a shard, and its health;
* ``control_connection``, ``shard_store``: what the proxy and the engine ask for themselves.
"""
