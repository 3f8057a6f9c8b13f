"""The exchange between a session and the servers: its connections, its transaction, answers carried to its client.

Read in this order:

* ``session_state``: the state of a session, and the parts of it that must stay on one connection;
* ``session_connections``, ``executor``: the connections of a session, how long it waits for one, and the statements on them;
* ``attempt``, ``reply``: a statement with its answer on the way, and the proxy's own answers;
* ``session_tracking``, ``diagnostics_queries``, ``retry_rules``: the effects of an answer, its diagnostics, and which statements are sent again;
* ``user_variable_sync``, ``user_variables``: user variables, copied to whichever connection the session uses next;
* ``prepared_execution``: a prepared statement on whichever connection it lands;
* ``transaction``, ``pending_effects``: a transaction with its branches over several shards, and its effects on messages.
"""
