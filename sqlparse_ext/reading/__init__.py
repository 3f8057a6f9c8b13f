"""From a template to its facts: who reads which statement, and what they look for.

`parser` gives a template to the reader of its verb (`utility_statements`, `queries`, `queues`), which
fills a `Shape`. `split` finds the statements of a text that holds several.
"""
