"""A client, from its greeting to its leaving. What its statements become is in ``proxy.sql``.

Read in this order:

* ``services``: what all sessions share;
* ``session``, ``connection_ids``, ``login_gate``, ``login_backoff``, ``login_work``: how a client comes in, or is refused;
* ``command_loop``, ``dispatch``: one command at a time, and who carries it out, those that statements have replaced among them;
* ``process_list``: whom it sees and may end.
"""
