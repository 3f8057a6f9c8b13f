"""The Spark pipeline over message tables: what runs on a cluster, next to the server.

`spark.functions` makes Spark columns of keyspace ids and shards, `spark.keyspace_ids` does the
same for Arrow arrays. `spark.cli` runs the jobs of `spark.jobs`, which reach the proxy through
`spark.endpoint`, and `spark.jdbc` has tables read by Spark's own JDBC source. The package imports
nothing of the server, and nothing else imports pyspark.
"""
