"""The MySQL front door: clients on one side, shards on the other.

It promises that a client sees one MySQL server. What belongs to message tables goes to the
engine, everything else to the shards, as the client wrote it, and answers come back as
bytes wherever nothing must change in them.

Read it in this order:

* ``errors``, ``wire`` (the protocol, without I/O), ``passwords``, ``net`` (the only sockets);
* ``backends``: connections to one server, their pool, its health, and the engine's statements;
* ``routing``, ``merge``, ``local_statements``: where a statement runs, many answers made one, and the proxy's own;
* ``execution``: what a session and the servers exchange;
* ``sql``: what becomes of a client's SQL;
* ``sessions``: a client, from its greeting to its leaving;
* ``twophase``: transactions that commit on all their shards or on none;
* ``accounts``, ``rights``: what the proxy's own accounts need on the servers, and what users' own accounts may do there;
* ``status``, ``admin``: what the proxy reports, as rows and over HTTP;
* ``fleet``, ``workers``, ``vtgate``: other members, other processes of this one, and Vitess's clients, over gRPC;
* ``app``, ``cli``: putting it all together; ``config``, ``commands``, ``vschema_files``, ``embedded``: around it.
"""

import os


# gRPC writes lines of its own to stderr, into a log that others read as JSON. It reads this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
