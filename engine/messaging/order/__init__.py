"""Messages that wait for others: of their key, or of a group."""
