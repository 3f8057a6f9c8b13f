"""The benchmarks: what streamfrom promises, measured as ratios against real opponents.

`python -m bench` starts servers of its own on loopback, runs every workload with both sides in
turn (A B A B), audits what was sent against what was acknowledged, and prints one table.
"""
