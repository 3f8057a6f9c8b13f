"""What becomes of a client's SQL: which shards run it, as what, and who answers.

Read in this order:

* ``guard``, ``catalog``: what a user may do, and what a target means;
* ``direct``: the hot path, in the turn of the loop in which the command came;
* ``statements``, ``preparation``, ``routed``: every other way a text can take;
* ``naming``, ``sequencing``, ``set_statement``: what is put into it, or around it, before it is routed;
* ``scatter``, ``gather``, ``merge_questions``: work on several shards;
* ``assignments``, ``demarcation``, ``neighbours``, ``killing``, ``explanation``: SET, transactions, USE, KILL, VEXPLAIN;
* ``prepared``, ``prepared_commands``, ``bulk``, ``text_statements``: statements that are prepared, by the protocol or by name;
* ``streams``, ``streaming``: STREAM, and one that is open.
"""
