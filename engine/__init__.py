"""The engine: which stream gets which message, when; and which shard a row lives on.

* ``messaging``: message tables, and how their rows are claimed and delivered;
* ``fleet``: which process dispatches a shard, and what members send each other;
* ``sharding``: keyspaces, vschemas, vindexes and sequences;
* ``errors``: the errors of both for a client.

May import sqlparse_ext; must not import proxy.
"""
