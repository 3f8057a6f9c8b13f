"""Upkeep of tables: the statements of purge, partitions, dead letters, depths, and looks at messages."""
