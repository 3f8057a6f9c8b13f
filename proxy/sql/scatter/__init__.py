"""Statements that several shards run together: merged answers, writes in parts, work in two stages."""
