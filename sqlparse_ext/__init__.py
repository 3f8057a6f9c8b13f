"""What a statement is, where it goes and what must change in it: pure functions over text.

Statements that need no change are never regenerated: the bytes of the client go on.
"""
