"""Statements about queues: STREAM, CREATE, ALTER and DROP QUEUE, requeues, sequences, the status tables."""
