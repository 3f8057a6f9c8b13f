"""The proxy's status and its queues' figures: one model for SQL, JSON and Prometheus.

``status_rows`` makes the rows of the tables `streamfrom.queues`, `.streams`, `.shards` and `.members`; ``status_source``
gathers their data, and ``fleet_figures`` merges the reports of several members. ``queue_figures`` is the list of a
queue's figures. ``terminal_tables`` formats the tables for a terminal.
"""
