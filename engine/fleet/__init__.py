"""The fleet: which process dispatches the message tables of a shard, and how members work together.

A shard's primary elects its dispatcher by a named lock (`GET_LOCK`), so clocks need not agree
and no other store is needed. The dispatcher serves the streams of all members.

Read in this order:

* ``election``: the rules by which a shard elects its dispatcher;
* ``lock_connection``: every SQL statement of an election, as conversations without I/O;
* ``directory``: the members, and which of them dispatches;
* ``elector``: from follower to dispatcher of one shard;
* ``peer_link``: the messages and links between members;
* ``prefetch_shares``: how a fixed prefetch is divided among the members that dispatch to one stream;
* ``peer_stream``: one stream between two members, from both of its ends, and how many of its rows may be on their way;
* ``streams_elsewhere``: this member's streams and news at other dispatchers (``link_elsewhere``);
* ``fleet``: all of it, as one process takes part, with other members' streams and news at this one.

None of it knows a socket or a database: sessions, links and the clock are passed in.
"""
