"""The MySQL front door: clients on one side, shards on the other.

To a client, the proxy is one MySQL server. Statements on message tables go to the engine, all others
to the shards as the client wrote them. Replies that need no change are passed on as bytes.

Read it in this order:

* ``errors``, ``wire`` (the protocol, without I/O), ``passwords``, ``net`` (the only sockets);
* ``backends``: connections to one server, their pool, its health, and the engine's statements;
* ``routing``, ``merge``, ``local_statements``: choosing the shards, merging their replies, and statements the proxy answers;
* ``execution``: the exchange between a session and the servers;
* ``sql``: a client's SQL, from text to a plan;
* ``sessions``: a client, from greeting to disconnect;
* ``twophase``: transactions that commit on all their shards or on none;
* ``accounts``, ``rights``: the privileges that the proxy's accounts need on the servers, and those that users' accounts have there;
* ``status``, ``admin``: the proxy's status, as rows and over HTTP;
* ``fleet``, ``workers``, ``vtgate``: other members, this member's other processes, and Vitess clients over gRPC;
* ``app``, ``cli``: putting it all together; ``config``, ``commands``, ``vschema_files``, ``embedded``: around it.
"""

import os


# gRPC writes its own lines to stderr, into a log that is parsed as JSON. It reads this variable on import.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
