"""What a message and a message table are: keys, ids, settings, definitions, waits, and what is counted of them."""
