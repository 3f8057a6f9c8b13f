"""From a template to its facts: who reads which statement, and what they look for.

`parser` gives a template to the reader of its verb (`commands`, `queries`, `inserts`, `stream`), which fills
a `draft`. `split` and `borders` find the statements of a text that holds several.
"""
