from streamfrom.engine.messaging.table.message import ClaimedRow, MessageKey


def test_keys_and_rows_are_plain_tuples():
    """They are made by the ten thousand; whatever else they become must be as cheap."""
    assert MessageKey(b"1", 50, 0) == (b"1", 50, 0, b"")
    assert isinstance(ClaimedRow(b"1", "-80", 0, 0, 30, b"x"), tuple)
