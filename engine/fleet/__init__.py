"""The fleet: which process dispatches the message tables of a shard, and how members work together.

A shard's primary elects its dispatcher by a lock of its own (`GET_LOCK`), so no clocks must agree
and no other store is needed. The dispatcher serves the streams of all members.

Read in this order:

* ``election``: by what rules the dispatcher of a shard is elected;
* ``lock_connection``: every SQL statement of an election, as conversations without I/O;
* ``directory``: who the members are, and which of them dispatches;
* ``elector``: from follower to dispatcher of one shard;
* ``peer_link``: what members send each other, and the ways on which they do;
* ``prefetch_shares``: how a fixed prefetch is divided among the members that dispatch to one stream;
* ``peer_stream``: one stream between two members, from both of its ends, and how many of its rows may be on their way;
* ``streams_elsewhere``: this member's streams and news at those that dispatch (``link_elsewhere``);
* ``fleet``: all of it, as one process takes part, with other members' streams and news at this one.

None of it knows a socket or a database: sessions, ways and the clock come in.
"""
