"""The gauges of message tables, read from their schedulers for monitoring."""
