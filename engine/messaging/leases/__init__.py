"""Which stream holds which message until when: in memory, in the row, and how a message is given back."""
