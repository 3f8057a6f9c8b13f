"""One answer from the rows of many shards: what to ask them, and how to put their rows together.

    comparison            how values compare and are written, after their column definitions
    ordered_merge         rows of several ordered sources as one ordered row of rows
    aggregates            COUNT, SUM, MIN, MAX and AVG from the parts that shards computed
    shard_texts           the pieces of one concrete SELECT
    row_merge             a SELECT of rows: order, limit
    group_query           a SELECT of groups: GROUP BY, DISTINCT, aggregates
    aggregate_expressions expressions of aggregates, for a shard to compute (`group_merge`)
    stage                 rows as a SELECT that gives them, by JSON_TABLE, in the places of a statement's parts

What a merge holds, and the bound:

    rows of shards on their way    256 KB a shard (`proxy.sql.scatter.gather`)
    groups                         the setting merge_memory (`group_query`, `group_merge`)
    rows for a second stage        PARTS_ROWS_MAX, PARTS_BYTES_MAX at a time (`proxy.sql.scatter.two_stage`)
    rows of an INSERT … SELECT     INSERT_ROWS_MAX, INSERT_BYTES_MAX at a time (`proxy.sql.scatter.two_stage`)

Pure: rows in, rows out. `proxy.sql.scatter.gather` does the rest.
"""
