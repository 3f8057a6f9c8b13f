"""One answer from the rows of many shards: what to ask them, and how to put their rows together.

    values      how values compare and are written, after their column definitions
    ordered     rows of several ordered sources as one ordered row of rows
    aggregates  COUNT, SUM, MIN, MAX, AVG and BIT_* from the parts that shards computed
    concatenated  GROUP_CONCAT from its values one by one
    distinct    which values of DISTINCT arguments a group has met
    texts       the pieces of one concrete SELECT
    rows        a SELECT of rows: order, limit
    groups      a SELECT of groups: GROUP BY, DISTINCT, aggregates
    computed    expressions of aggregates, for a shard to compute (computed_merge, averages, literals)
    combined    rows in the place of the SELECT that gave them, for a shard to go on with
    counted     how many rows such an answer has

Pure: rows in, rows out. `proxy.sql.gather` does the rest.
"""
