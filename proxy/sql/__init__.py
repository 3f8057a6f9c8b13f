"""What becomes of a client's SQL: which shards run it, as what, and who answers.

Read in this order:

* ``compile``: what a target means, and a statement's plan and texts for its shards;
* ``fast_path``: the hot path, in the turn of the loop in which the command came;
* ``statement_runner``, ``routed_statements``: every statement that does not take the hot path;
* ``ack_desk``: which way an ack goes;
* ``own_answers``: what the proxy answers itself (``compile.answerers`` is the table);
* ``scatter``: work on several shards;
* ``set_variables``, ``transaction_control``: SET, transactions;
* ``prepared_statements``, ``prepared_commands``, ``text_statements``: prepared statements, of the protocol and by name;
* ``queues``: STREAM and the statements about queues.
"""
