"""What the proxy reports of itself and its queues: one model for SQL, JSON and Prometheus.

``status_rows`` makes the rows of the tables `streamfrom.queues`, `.streams`, `.shards` and `.members`; ``status_source``
gathers what they are made of, and ``fleet_figures`` makes one of what several members report. ``queue_figures`` is the table of a
queue's figures. ``terminal_tables`` are what a terminal shows.
"""
