import pytest
from hypothesis import given

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.framing import frames
from streamfrom.proxy.wire.resultset import (
    column_count,
    text_row,
)
from streamfrom.proxy.wire.row_collector import RowCollector
from tests.proxy.wire.streams import (
    DEFINITION,
    ONE,
    Done,
    Failed,
    Rows,
    backend_stream,
    cut,
    error_of,
    ok_of,
    places,
    result_sets,
)


@given(part=result_sets(), places=places)
def test_any_cut_of_the_stream_gives_the_same_rows(part, places):
    reader = RowCollector()
    rows = [row for piece in cut(backend_stream([part]), places) for row in reader.feed(piece)]
    assert tuple(rows) == part.rows
    assert tuple(reader.columns) == part.definitions
    assert reader.done
    assert reader.rows == len(rows)
    if isinstance(part.end, Failed):
        assert error_of(reader).code == part.end.code
    else:
        assert ok_of(reader).warnings == part.end.warnings
        assert reader.trackers == part.end.trackers


def test_rows_come_as_soon_as_they_are_whole_and_a_second_result_set_is_refused():
    stream = backend_stream([Rows((DEFINITION,), (text_row([b"1"]), text_row([b"2"])), Done())])
    reader = RowCollector()
    head = frames([column_count(1), DEFINITION], 1)[0]
    assert reader.feed(head) == []
    assert reader.columns == [DEFINITION]
    one = len(head) + 6
    assert reader.feed(stream[len(head) : one]) == [text_row([b"1"])]
    assert not reader.done
    with pytest.raises(WireError):
        RowCollector().feed(backend_stream([ONE, ONE]))
