"""Queues that people use instead: their servers, and clients as lean as our own."""
