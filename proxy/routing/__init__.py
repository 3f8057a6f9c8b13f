"""Where a statement runs. Pure: statement and vschema in, route out.

``planner`` makes a plan of a statement's shape and a route of its values. ``tables`` knows who owns
a row, ``joined`` what several tables have to do with each other, ``scattered`` how the answers of
several shards become one, and ``routes`` are the words for it.
"""
