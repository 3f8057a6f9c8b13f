"""The MySQL front door: clients on one side, shards on the other.

It promises that a client sees one MySQL server. What belongs to message tables goes to the
engine, everything else to the shards, as the client wrote it, and answers come back as
bytes wherever nothing must change in them.

Read it in this order:

* ``errors``, ``wire`` (the protocol, without I/O), ``net`` (the only sockets);
* ``backend``, ``pool``, ``shard``: connections to one server, and its health;
* ``session_state``, ``settings``: what a client's session is, apart from its sockets;
* ``routing``, ``guard``, ``preparation``: what a statement may, where it goes, what it does;
* ``direct``, ``executor``, ``transaction``, ``scatter``, ``relay``: running it;
* ``statements``, ``streaming``, ``session``: what each kind of statement does, one client;
* ``store``: the engine's statements; ``app``, ``cli``: putting it all together;
* ``config`` and its kin, ``check``, ``demo``, ``embedded``: around it.
"""
