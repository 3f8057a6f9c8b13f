"""Statements that several shards run as one: answers gathered, writes in parts, work in two stages."""
