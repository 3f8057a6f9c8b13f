import pytest

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.writes.completion import (
    acknowledged,
    is_state_bound,
    preparable,
    sets_state,
)
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement


@cases(sql=str, text=str)
def test_acked_is_an_ack(sql, text):
    assert sets_state(shape(sql))
    assert acknowledged(statement(sql)) == text.encode()


@cases(sql=str)
def test_no_other_state_can_be_set(sql):
    with pytest.raises(Unsupported, match="SET state = 'acked' acknowledges"):
        acknowledged(statement(sql))


def test_a_state_that_is_bound():
    assert is_state_bound(shape("UPDATE q SET state = ?"))
    assert not is_state_bound(shape("UPDATE q SET state = 'acked'"))
    assert not sets_state(shape("UPDATE q SET a = 1 WHERE state = 'acked'"))
    assert not sets_state(
        shape("INSERT INTO q (a) VALUES (1) ON DUPLICATE KEY UPDATE state = 1")
    )


def test_what_a_server_prepares_has_the_same_parameters():
    text = "UPDATE q SET a = ?, q.`state` = ? WHERE state = 'fired' AND id = ?"
    assert preparable(statement(text)) == (
        b"UPDATE q SET a = ?, q.time_acked = ? WHERE state = 'fired' AND id = ?"
    )
