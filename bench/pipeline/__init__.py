"""The workload `spark`: the package `spark` at work on two shards, in one Spark session of two threads.

    rows      reading a table: JDBC through the proxy and direct, the source, and what memory that takes
    queue     a message table as a stream, and archived
    ids       keyspace ids
    session   the session, and what its processes hold

It runs by name alone (`./dev bench spark`), because it needs a JVM and half a gigabyte of packages.
"""
