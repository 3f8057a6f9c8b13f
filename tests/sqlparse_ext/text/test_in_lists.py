"""An IN list is shared out by bytes: nothing but the list changes."""

import pytest

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.statements import ListSlot
from streamfrom.sqlparse_ext.text.in_lists import share_list


def shared(sql: bytes, *shares: list[int]) -> list[bytes]:
    statement = StatementCache().get(sql)
    (slot,) = statement.shape.conditions["id"]
    assert isinstance(slot, ListSlot)
    return share_list(statement, slot, shares)


def test_each_share_has_its_own_literals_as_they_were_written():
    sql = b"UPDATE t SET a = 'x, y'  /* c */ WHERE id IN (1,0x02 , '3',-4) AND b = 5"
    assert shared(sql, [0, 2], [1, 3]) == [
        b"UPDATE t SET a = 'x, y'  /* c */ WHERE id IN (1, '3') AND b = 5",
        b"UPDATE t SET a = 'x, y'  /* c */ WHERE id IN (0x02, -4) AND b = 5",
    ]


@pytest.mark.parametrize("blank", [b"", b" ", b" -- why\n ", b"/* , */"])
def test_blanks_and_comments_around_the_list_stay(blank):
    sql = b"UPDATE t SET a = 1 WHERE id IN" + blank + b"(" + blank + b"1" + blank + b",2)"
    kept = b"UPDATE t SET a = 1 WHERE id IN" + blank + b"("
    (found,) = shared(sql, [1])
    assert found.startswith(kept)
    assert found.replace(blank, b"") == b"UPDATE t SET a = 1 WHERE id IN(2)".replace(blank, b"")
