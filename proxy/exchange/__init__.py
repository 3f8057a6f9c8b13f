"""What a session and the servers exchange: its connections, its transaction, answers carried to its client.

Read in this order:

* ``state``: what a session is, and what must stay on one connection;
* ``holdings``, ``executor``, ``patience``: which connections it has, what they run, and how long it waits for one;
* ``relay``, ``reply``: a server's answer carried to the client, and the proxy's own;
* ``following``, ``recall``, ``retries``: what an answer means, what it left behind, and what may be tried again;
* ``execution``: a prepared statement on whichever connection it lands;
* ``transaction``: its branches over several shards.
"""
