"""Reasons to hold messages back: limits, rows that are set aside, and pauses after failures."""
