"""Run a client's SQL: its shards, the text that each gets, and the answer.

Read in this order:

* ``compile``: the meaning of a target, and a statement's plan and texts for its shards;
* ``fast_path``: the hot path, in the turn of the loop in which the command came;
* ``statement_runner``, ``routed_statements``: every statement that does not take the hot path;
* ``ack_desk``: the choice of the way an ack goes;
* ``own_answers``: answers that the proxy makes itself (``compile.answerers`` is the table);
* ``scatter``: work on several shards;
* ``set_variables``, ``transaction_control``: SET, transactions;
* ``prepared_statements``, ``prepared_commands``, ``text_statements``: prepared statements, by the protocol and by name;
* ``queues``: STREAM and the statements about queues.
"""
