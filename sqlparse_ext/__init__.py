"""Read and edit statements: their meaning, their routing facts, and the edits before they are sent. Pure functions over text.

Statements that need no change are never regenerated: the client's bytes are sent. All texts that
differ only in their values share one shape, which is read once. This package imports nothing from the others.

Read in this order:

* ``text``: a text becomes a template and its values, and the template becomes tokens;
* ``sql_mode``, ``literal_values``: settings that change how texts are read, and the values of literals;
* ``statements``: the facts of a template, for all texts of one shape;
* ``reading``: from a template to its facts;
* ``cache``: shapes by their text;
* ``selects``: queries that several shards must answer;
* ``session``: how a statement depends on the session that sends it;
* ``writes``: the changes to a write before it is sent.
"""
