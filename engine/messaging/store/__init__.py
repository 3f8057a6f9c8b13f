"""How the engine asks a database: statements as conversations without I/O, and the rows that a server refuses to write."""
