"""The engine's access to a database: statements as conversations without I/O, and rows that a server refuses to write."""
