"""The MySQL front door: clients on one side, shards on the other.

It promises that a client sees one MySQL server. What belongs to message tables goes to the
engine, everything else to the shards, as the client wrote it, and answers come back as
bytes wherever nothing must change in them.

Read it in this order: ``errors``, ``wire`` (the protocol, without I/O), ``net`` and
``backend`` (the shell around it), ``pool``, ``routing``, ``session``, ``server``, ``app``.
"""
