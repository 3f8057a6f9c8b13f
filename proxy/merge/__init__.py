"""Merge the rows of many shards into one answer: the queries for the shards, and the merge of their rows.

    comparison            how values compare and are written, by their column definitions
    ordered_merge         the rows of several ordered sources as one ordered sequence
    aggregates            COUNT, SUM, MIN, MAX and AVG from the parts that shards computed
    shard_texts           the pieces of one concrete SELECT
    row_merge             a SELECT of rows: order, limit
    group_query           a SELECT of groups: GROUP BY, DISTINCT, aggregates
    aggregate_expressions expressions of aggregates, for a shard to compute (`group_merge`)
    stage                 rows as a SELECT that returns them, by JSON_TABLE, in place of a statement's parts

The rows in memory, and their bounds:

    rows of shards on their way    256 KB a shard (`proxy.sql.scatter.gather`)
    groups                         the setting merge_memory (`group_query`, `group_merge`)
    rows for a second stage        PARTS_ROWS_MAX, PARTS_BYTES_MAX at a time (`proxy.sql.scatter.two_stage`)
    rows of an INSERT … SELECT     INSERT_ROWS_MAX, INSERT_BYTES_MAX at a time (`proxy.sql.scatter.two_stage`)

Pure: rows in, rows out. `proxy.sql.scatter.gather` does the rest.
"""
