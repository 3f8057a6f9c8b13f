"""The room of the Spark pipeline over message tables; empty in this version.

It will import nothing of the server and nothing else will import pyspark. Until then Spark
reads and writes message tables over JDBC through the proxy like any MySQL client.
"""
