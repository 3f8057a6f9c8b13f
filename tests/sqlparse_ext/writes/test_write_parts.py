"""A write over several shards: an IN list is shared out by bytes, and nothing but the list changes."""

import pytest

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import ListSlot
from streamfrom.sqlparse_ext.writes.write_parts import (
    limit_of,
    rows_max,
    share_list,
    with_limit,
)
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement


def limited(sql):
    found = statement(sql)
    limit = limit_of(found.shape)
    assert limit is not None
    return found, limit


@cases(sql=str)
def test_the_number_at_the_end_is_read_and_replaced(sql):
    found, limit = limited(sql)
    assert rows_max(found, limit) == 7
    assert with_limit(found, 40).decode() == "40".join(sql.rsplit("7", 1))


def test_a_bound_number_is_read():
    found, limit = limited("DELETE FROM t WHERE a = ? LIMIT ?")
    assert rows_max(found.bind((b"x", 3)), limit) == 3
    for wrong in (found, found.bind((b"x", -3)), found.bind((b"x", 1.5))):
        with pytest.raises(Unsupported, match="LIMIT that is no whole number"):
            rows_max(wrong, limit)


@pytest.mark.parametrize("number", ["1.5", "'7'"])
def test_what_is_no_whole_number_is_refused(number):
    with pytest.raises(Unsupported, match="LIMIT that is no whole number"):
        rows_max(*limited(f"DELETE FROM t LIMIT {number}"))


@cases(sql=str)
def test_other_statements_have_no_such_limit(sql):
    assert limit_of(shape(sql)) is None


def shared(sql: bytes, *shares: list[int]) -> list[bytes]:
    found = statement(sql)
    (slot,) = found.shape.conditions["id"]
    assert isinstance(slot, ListSlot)
    return share_list(found, slot, shares)


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
