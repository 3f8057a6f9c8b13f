"""The Spark pipeline over message tables: what runs on a cluster, beside the server.

`spark.functions` makes Spark columns of keyspace ids and shards, `spark.keyspace_ids` does the
same for Arrow arrays. The package imports nothing of the server, and nothing else imports pyspark.
"""
