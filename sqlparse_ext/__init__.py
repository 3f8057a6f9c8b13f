"""What a statement is, where it goes and what must change in it: pure functions over text.

Statements that need no change are never regenerated: the bytes of the client go on. All texts that
differ in their values only share one shape, which is read once. It imports nothing of the rest.

Read in this order:

* ``lexer``, ``tokens``: a text becomes a template and its values;
* ``statements``, ``draft``: what is known of a template, and while it is being found out;
* ``parser``, ``commands``, ``queries``, ``inserts``, ``stream``: who reads which statement;
* ``uses``, ``conditions``, ``rows``, ``lists``, ``times``, ``session_settings``: what they look for;
* ``cache``: shapes by their text;
* ``messages``, ``completion``: what a statement does to messages, and what completes it;
* ``generated``, ``inline``, ``identifiers``, ``parameters``: values and names put into a text;
* ``select``, ``structure``, ``ties``, ``unions``: queries that several shards must answer;
* ``split``: several statements in one text.
"""
