"""The engine: which message goes to whom, and when; and which shard a row lives on.

* ``messaging``: message tables, and how their rows are claimed and delivered;
* ``fleet``: which process dispatches a shard, and what members send each other;
* ``sharding``: keyspaces, vschemas, vindexes and sequences;
* ``errors``: what both return to a client.

May import sqlparse_ext; must not import proxy.
"""
