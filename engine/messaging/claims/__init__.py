"""How due rows are won: by a write, by a read alone, or in the order of their keys."""
