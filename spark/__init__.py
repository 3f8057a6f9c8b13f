"""The Spark pipeline over message tables: the code that runs on a cluster, next to the server.

`spark.functions` provides Spark columns of keyspace ids and shards, `spark.keyspace_ids` does the
same for Arrow arrays. `spark.cli` runs the jobs of `spark.jobs`, which reach the proxy through
`spark.endpoint`. `spark.jdbc` configures Spark's own JDBC source for the proxy. The package imports
nothing from the server, and nothing else imports pyspark.
"""
