"""What becomes of a write before it is sent: times, ids and columns that its text leaves out.

`messages` says what a statement does to messages, `completion` what a message table needs beside it,
`generated` puts values of sequences and the list of columns in. `moment_reader` finds the moments beside time
columns, and `moments` makes nanoseconds of them.
"""
