import pytest

from streamfrom.proxy.wire.framing import frames
from streamfrom.proxy.wire.response import PassThrough, Resequencer, RowCollector
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    column_count,
    column_definition,
    ok_packet,
    text_row,
)
from tests.proxy.wire.streams import BACKEND, MODERN, OLD


ROWS = [text_row([b"1"]), text_row([b"2"])]


@pytest.mark.parametrize(
    "make", [lambda: PassThrough(MODERN), lambda: Resequencer(OLD), RowCollector]
)
def test_all_readers_find_the_same_end(make):
    end = ok_packet(status=2, capabilities=BACKEND, header=0xFE)
    head = [column_count(1), column_definition(ColumnDefinition("a"))]
    answer, _ = frames([*head, *ROWS, end], 1)
    reader = make()
    reader.feed(answer[:-1])
    assert not reader.done
    reader.feed(answer[-1:] + b"next")
    assert reader.done
    assert (reader.rows, reader.status, reader.rest) == (2, 2, b"next")
