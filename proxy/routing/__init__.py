"""Route statements. Pure: statement and vschema in, route out.

``planner`` makes a plan from a statement's shape, and a route from its values. ``vschema_tables`` finds the shards of a table's
rows, or of given values. ``plan_joins`` plans statements over several tables, ``plan_scatter`` decides how the answers of
several shards are merged, and ``routes`` defines the results.
"""
