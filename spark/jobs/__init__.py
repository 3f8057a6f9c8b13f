"""Jobs over message tables: each is a `run(spark, config) -> Report`.

`archive` keeps acknowledged messages as Parquet and then purges them, `manifest` is what it
publishes, `reading` brings acknowledged rows into Spark and `progress` says how far a job is.
"""
