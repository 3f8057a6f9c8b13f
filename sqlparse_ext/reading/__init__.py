"""From a template to its facts: the readers of each kind of statement.

`parser` gives a template to the reader of its verb (`utility_statements`, `queries`, `queues`), which
fills a `Shape`. `split` finds the statements of a text that holds several.
"""
