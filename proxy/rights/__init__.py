"""Checks whether a user's own account may do what the proxy does for it on the shards' account.

The server decides: the proxy sends it, as that user, statements that match no row.

* ``questions``: these statements, by act; pure;
* ``desk``: sends them on a connection of the account, and keeps the answers.

Which account runs which work:

| work | account | checked first |
|---|---|---|
| a client's statements, COMMITs, acks alone or together with others of the account | the session's | |
| CREATE, ALTER and DROP QUEUE, PAUSE, RESUME and REQUEUE; a visitor's actions on the status page | the session's, or the visitor's | |
| column definitions of a STREAM | the session's | |
| rows of a STREAM, leases, purges, dead letters | the shards' | `Act.TAKE`, checked again while the stream is open |
| acks that the dispatcher writes: in order of keys, early, on another member | the shards' | `Act.ACK`; until the answer is known the ack runs on the session's connection |
| leases and early acks written before a statement that changes their rows | the shards' | `Act.CHANGE`, `Act.REMOVE` |
| values of sequences | the shards' | `Act.DRAW` |
| the messages that the status page shows | the shards' | `Act.BROWSE` |
| queues in `streamfrom.*`, SHOW QUEUES, the status page | none: they are in memory | `RightsDesk.sight` |
| columns of a table for an INSERT without a list, the least id that an INSERT IGNORE left | the shards' | nothing: the answer is not shown, and the INSERT is the session's |
| health, election, polls, definitions, KILL, recovery of two-phase commits | the shards' | nothing: no client causes them |
"""
