"""SELECTs whose rows come from several shards: their parts, and the merges that are allowed.

`select_reader` takes a SELECT apart into a `select_ast`. `join_equalities` finds the equalities of its tables' columns,
in the terms of `select_ast`. `inner_selects` is about SELECTs within SELECTs, and
`plain_reads` recognises the simplest ones.
"""
