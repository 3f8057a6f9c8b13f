"""Complete a write before it is sent: add the times, ids and columns that its text leaves out.

`message_effects` works out a statement's effect on messages, `completion` adds the needs of a message table,
`insert_gaps` puts in values of sequences and the list of columns. `moment_reader` finds the moments next to time
columns, and `moments` turns them into nanoseconds.
"""
