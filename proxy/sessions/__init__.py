"""The clients' side: a session, and the way of each of its commands to the shards and back.

Read in this order:

* ``services``, ``guard``, ``catalog``: what all sessions share, what a user may do, what a target means;
* ``session``, ``dispatch``, ``parts``: one client, one command at a time, and what it is made of;
* ``entrance``, ``deadlines``, ``peers``: how it comes in, when it must go, and whom it sees;
* ``direct``: the hot path, in the turn of the loop in which the command came;
* ``statements``, ``preparation``, ``routed``: every other way a text can take;
* ``state``, ``executor``, ``following``, ``retries``, ``relay``, ``reply``: a session's connections, and answers carried to its client;
* ``transaction``, ``scatter``, ``gather``: work on several shards;
* ``prepared``, ``prepared_commands``, ``execution``: the binary protocol's statements;
* ``recall``: what a server would have said of the statement before;
* ``streams``, ``streaming``: STREAM, and one that is open.
"""
