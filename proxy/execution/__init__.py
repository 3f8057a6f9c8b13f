"""What a session and the servers exchange: its connections, its transaction, answers carried to its client.

Read in this order:

* ``session_state``: the state of a session, and the parts of it that must stay on one connection;
* ``session_connections``, ``executor``: the connections of a session, how long it waits for one, and the statements on them;
* ``attempt``, ``reply``: a statement with its answer on the way, and answers of the proxy's own;
* ``session_tracking``, ``diagnostics_queries``, ``retry_rules``: what an answer means, what it left behind, and what may be tried again;
* ``user_variable_sync``, ``user_variables``: user variables, brought to whichever connection the session goes on;
* ``prepared_execution``: a prepared statement on whichever connection it lands;
* ``transaction``, ``pending_effects``: a transaction with its branches over several shards, and what it did to messages.
"""
