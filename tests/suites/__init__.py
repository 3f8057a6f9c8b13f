"""Test suites that others wrote, run through the proxy: `python -m tests.suites [name …]`.

A suite runs as shipped, against a fresh server or against the proxy before one, in an unsharded
keyspace. What passes direct has to pass through; `baseline/` holds what passes direct, and every
known difference under its cause.
"""
