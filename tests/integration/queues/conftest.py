"""What tests of queues share: a client in each keyspace of the shared proxy."""
