"""How due rows are claimed: by a write, by a read only, or in the order of their keys."""
