"""Messages and message tables: keys, ids, settings, definitions, waits and counters."""
