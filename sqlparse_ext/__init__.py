"""What a statement is, where it goes and what must change in it: pure functions over text.

Statements that need no change are never regenerated: the bytes of the client go on. All texts that
differ in their values only share one shape, which is read once. It imports nothing of the rest.

Read in this order:

* ``text``: a text becomes a template and its values, and that becomes tokens;
* ``sql_mode``, ``literal_values``: what changes how texts are read, and the values of their literals;
* ``statements``: what is known of a template, for all texts of one shape;
* ``reading``: from a template to its facts;
* ``cache``: shapes by their text;
* ``selects``: queries that several shards must answer;
* ``session``: what a statement has to do with the session that sends it;
* ``writes``: what becomes of a write before it is sent.
"""
