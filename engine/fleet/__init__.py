"""The fleet: which process dispatches the message tables of a shard, and how members work together.

A shard's primary elects its dispatcher by a lock of its own (`GET_LOCK`), so no clocks must agree
and no other store is needed.

Read in this order:

* ``election``: from follower to dispatcher of one shard, ``handle(event, now) -> actions``;
* ``lock_connection``: every SQL statement of an election, as conversations without I/O;
* ``directory``: who the members are, and which of them dispatches;
* ``credit``: how many rows may be on their way from one member to another.
* ``peer_link``: what members tell each other, and the ways on which they do.

All of it is pure, no socket, clock, loop or dice, but ``elector``, which carries an election out.
"""
