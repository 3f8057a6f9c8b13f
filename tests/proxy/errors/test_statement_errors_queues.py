from streamfrom.proxy.errors import BadQueue, NoSuchQueue, QueueExists


def test_codes_are_those_of_tables():
    assert QueueExists("q").wire_code() == (1050, "42S01")
    assert NoSuchQueue("q").wire_code() == (1051, "42S02")
    assert BadQueue("no").wire_code() == (1210, "HY000")
