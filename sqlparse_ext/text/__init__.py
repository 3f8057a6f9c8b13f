"""Texts and their tokens: separate a statement's code from its values, and write values and names as SQL.

A text becomes a template (`lexer`, by the regular expressions of `lexer_patterns`, large ones in `chunks`), without its
repetitions. The template becomes tokens (`tokens`), nested if groups matter (`nodes`). `identifiers` writes names and values as
SQL; `insert_rows` reads the `?`s and VALUES of a text.
"""
