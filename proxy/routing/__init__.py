"""Where a statement runs. Pure: statement and vschema in, route out.

``planner`` makes a plan of a statement's shape and a route of its values. ``vschema_tables`` knows which table's
rows are where, and which shards some values name, ``plan_joins`` what several tables have to do with each other, ``plan_scatter`` how the answers of
several shards become one, and ``routes`` are the words for it.
"""
