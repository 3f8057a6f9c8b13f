"""Texts and their tokens: what is code in a statement, what are its values, and how others get in.

A text becomes a template (`lexer`, by the regular expressions of `lexer_patterns`, large ones in `chunks`), of which
what repeats is left out, and that becomes tokens (`tokens`), nested where groups matter (`nodes`). Names and values are written as
SQL by `identifiers`; `insert_rows` is about the `?`s and VALUES of a text.
"""
