"""The name that users write; what is behind it is tested with real shards beside this."""


def test_it_is_called_streamfrom_and_its_manual_names_the_options():
    from spark.source import MessageSource

    assert MessageSource.name() == "streamfrom"
    for option in (
        "proxy",
        "table",
        "password_env",
        "shards",
        "partitionsPerShard",
        "feed",
        "maxRowsPerBatch",
        "leaseSeconds",
        "lagSeconds",
    ):
        assert option in (MessageSource.__doc__ or ""), option
