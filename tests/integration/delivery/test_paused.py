"""A queue that is paused by its comment sends nothing; all else goes on."""

import pytest

from tests.fixtures.streams import refused, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all


pytestmark = pytest.mark.db

QUIET_S = 0.3


def test_a_pause_holds_back_what_is_sent_and_acks_go_on(queue: Queue) -> None:
    other = queue.create()
    (_, definition) = rows(other, "SHOW CREATE TABLE my_message")[0]
    comment = definition.rpartition("COMMENT='")[2].rstrip("'")
    stream = queue.stream("STREAM id FROM my_message")
    insert_all(other, [1])
    assert stream.take(1) == [(1,)]

    run(other, f"ALTER TABLE my_message COMMENT = '{comment},vt_paused=on'")
    insert_all(other, [2, 3])
    assert stream.poll(QUIET_S) is None
    assert rows(other, "STREAM id FROM my_message LIMIT 5 WAIT 0") == ()
    run(other, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
    assert rows(other, "SELECT id FROM my_message WHERE time_acked IS NOT NULL") == ((1,),)

    run(other, f"ALTER TABLE my_message COMMENT = '{comment},vt_paused=off'")
    assert stream.take(2) == [(2,), (3,)]


def test_a_switch_that_is_none_is_told_and_a_right_one_cures_it(queue: Queue) -> None:
    other = queue.create()
    (_, definition) = rows(other, "SHOW CREATE TABLE my_message")[0]
    comment = definition.rpartition("COMMENT='")[2].rstrip("'")
    run(other, f"ALTER TABLE my_message COMMENT = '{comment},vt_paused=maybe'")
    code, text = refused(other, "STREAM * FROM my_message LIMIT 1 WAIT 0")
    assert (code, "vt_paused must be 'on' or 'off', not 'maybe'" in text) == (1105, True)
    run(other, f"ALTER TABLE my_message COMMENT = '{comment}'")
    assert rows(other, "STREAM * FROM my_message LIMIT 1 WAIT 0") == ()
