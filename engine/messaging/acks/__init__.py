"""How acks are written that do not go to the server by themselves."""
