"""The benchmarks: measure what streamfrom promises, as ratios to real opponents.

`python -m bench` starts its own servers on loopback, runs every workload with both sides in
turn (A B A B), audits deliveries and acknowledgements against the messages sent, and prints one table.
"""
