"""Which message belongs to whom and until when: in memory, in its row, and how it is given back."""
