"""SELECTs whose rows come from several shards: what they are made of, and what may be put together.

`select` takes one apart into `pieces`; `structure` of the reading room and `ties` here say which tables hang
together; `parts`, `derived` and `unions` are the SELECTs within SELECTs; `plain_reads` are the simplest.
"""
