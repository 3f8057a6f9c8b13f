"""The scheduler of a table: `handle(event, now) -> actions`."""
