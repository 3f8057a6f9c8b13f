"""What becomes of a client's SQL: which shards run it, as what, and who answers.

Read in this order:

* ``catalog``: what a target means;
* ``fast_path``: the hot path, in the turn of the loop in which the command came;
* ``statement_runner``, ``statement_compiler``, ``routed_statements``: every statement that does not take the hot path;
* ``insert_columns``, ``sequence_statements``, ``set_statement_for``: what is put into a statement, or left out of it,
before it is routed;
* ``scatter``, ``gather``, ``merge_metadata``: work on several shards;
* ``set_variables``, ``vitess_variables``, ``transaction_control``, ``sibling_databases``, ``kill_targets``, ``vexplain_statement``: SET, transactions, USE, KILL, VEXPLAIN;
* ``prepared_statements``, ``prepared_commands``, ``bulk_commands``, ``text_statements``: prepared statements, of the
protocol and by name;
* ``stream_statements``, ``message_stream``: STREAM, and a stream that is open.
"""
