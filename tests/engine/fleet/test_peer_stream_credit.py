import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.fleet.peer_link import RowsSent, RowsTaken
from streamfrom.engine.fleet.peer_stream import (
    ROW_BYTES,
    WINDOW_BYTES,
    RowsAway,
    RowsMissing,
    StreamElsewhere,
)
from streamfrom.engine.messaging.table.message import ClaimedRow


def rows(*sizes, start=0):
    return [
        ClaimedRow(b"%d" % number, "-", 0, 0, 1, b"x" * size)
        for number, size in enumerate(sizes, start)
    ]


def test_rows_are_numbered_through_and_go_while_there_is_credit_however_large_they_are():
    large = RowsAway()
    large.send(rows(2 * WINDOW_BYTES))
    assert [large.has_credit, large.reported(1), large.has_credit] == [False, True, True]
    away = RowsAway(1000)
    assert away.send(rows(100, 100)) == 0
    assert away.has_credit
    assert away.send(rows(900, start=2)) == 2
    assert not away.has_credit


def test_a_member_cannot_report_what_it_was_not_sent():
    away = RowsAway()
    away.send(rows(1))
    with pytest.raises(RowsMissing):
        away.reported(2)
    with pytest.raises(RowsMissing):
        RowsAway().unsent(1)


def test_what_was_taken_is_reported_by_quarters_of_the_window():
    here = StreamElsewhere(1, frozenset(), 4 * (100 + ROW_BYTES))
    here.receive(RowsSent(1, 0, (bytes(50),)))
    assert here.taken() is None, "small rows are reported together"
    here.receive(RowsSent(1, 1, (bytes(50),)))
    assert here.taken() == RowsTaken(1, 2)
    assert here.taken() is None, "nothing new"


@given(st.data())
def test_every_row_is_taken_or_comes_back_whatever_the_network_does(data):
    away, here = RowsAway(500), StreamElsewhere(1, frozenset(), 500)
    sent: list[ClaimedRow] = []
    waiting: list[bytes] = []
    taken: list[bytes] = []
    reports: list[int] = []
    number = 0
    for _ in range(data.draw(st.integers(1, 30))):
        match data.draw(st.sampled_from(["send", "take", "report"])):
            case "send" if away.has_credit:
                sizes = data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=4))
                batch = rows(*sizes, start=number)
                first = away.send(batch)
                number += len(sizes)
                sent += batch
                for _ in range(data.draw(st.integers(1, 2))):
                    message = RowsSent(1, first, tuple(row.payload for row in batch))
                    waiting += [row.payload for row in here.receive(message)]
            case "take":
                taken += waiting
                waiting = []
                if report := here.taken():
                    reports.append(report.rows)
            case "report" if reports:
                away.reported(data.draw(st.sampled_from(reports)))
    back = [row.payload for row in away.unsent(len(taken))]
    assert taken + waiting == [row.payload for row in sent]
    assert back == waiting
