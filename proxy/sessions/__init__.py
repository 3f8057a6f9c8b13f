"""A client, from its greeting to its end. ``proxy.sql`` handles its statements.

Read in this order:

* ``services``: the parts that all sessions share;
* ``session``, ``connection_ids``, ``login_gate``, ``login_backoff``, ``login_work``: how a client is admitted, or refused;
* ``command_loop``, ``dispatch``: one command at a time, and the parts that carry them out, including those that statements have replaced;
* ``process_list``: the sessions it sees and may end.
"""
