import pytest

from streamfrom.engine.messaging.store.row_writes import is_of_rows


@pytest.mark.parametrize(
    ("code", "is_row"),
    [
        (1264, True),  # out of range
        (4025, True),  # CHECK of MariaDB
        (3819, True),  # CHECK of MySQL
        (1451, True),  # a foreign key
        (1644, True),  # SIGNAL
        (1292, True),  # a truncated value
        (3140, True),  # JSON
        (1205, False),
        (1213, False),
        (1290, False),
        (1836, False),
        (1142, False),
        (1054, False),
        (1146, False),
        (1114, False),
        (2006, False),
        (0, False),
    ],
)
def test_errors_are_about_rows_or_not(code, is_row):
    assert is_of_rows(code) == is_row
