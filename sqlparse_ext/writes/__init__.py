"""What becomes of a write before it is sent: times, ids and columns that its text leaves out.

`message_effects` says what a statement does to messages, `completion` what a message table needs in addition,
`insert_gaps` puts values of sequences and the list of columns in. `moment_reader` finds the moments next to time
columns, and `moments` makes nanoseconds of them.
"""
