"""SELECTs whose rows come from several shards: what they are made of, and what may be put together.

`select_reader` takes a SELECT apart into a `select_ast`. `join_equalities` says what the columns of its tables
equal, in the terms of `select_ast`. `inner_selects` is about SELECTs within SELECTs, and
`plain_reads` recognises the simplest ones.
"""
