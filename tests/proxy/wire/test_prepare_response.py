import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.constants import Capability
from streamfrom.proxy.wire.framing import frame, frames
from streamfrom.proxy.wire.prepare_response import PARAMETER, PrepareReader, prepare_answer
from streamfrom.proxy.wire.resultset import ColumnDefinition, column_definition, err_packet


MODERN = int(Capability.PROTOCOL_41 | Capability.DEPRECATE_EOF)
OLD = int(Capability.PROTOCOL_41)


def answer(parameters: int, columns: int, capabilities: int = MODERN) -> bytes:
    definitions = [
        column_definition(ColumnDefinition(f"c{number}")) for number in range(columns)
    ]
    payloads = prepare_answer(
        7,
        [column_definition(PARAMETER)] * parameters,
        definitions,
        capabilities=capabilities,
        status=2,
        warnings=3,
    )
    return frames(payloads, 1)[0]


@given(st.integers(0, 5), st.integers(0, 5), st.lists(st.integers(0, 2000), max_size=6))
def test_an_answer_cut_anywhere_reads_the_same(parameters, columns, cuts):
    data = answer(parameters, columns) + b"behind"
    reader = PrepareReader()
    borders = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    start = 0
    rest = b""
    for border in borders:
        if reader.done:
            rest += data[start:border]
        else:
            reader.feed(data[start:border])
        start = border
    assert reader.done
    assert reader.rest + rest == b"behind"
    assert (reader.statement_id, reader.warnings, reader.error) == (7, 3, None)
    assert reader.parameters == [column_definition(PARAMETER)] * parameters
    assert len(reader.columns) == columns


def test_an_error_is_the_whole_answer():
    reader = PrepareReader()
    reader.feed(frame(err_packet(1064, "42000", "no", MODERN), 1))
    assert reader.done
    assert reader.error is not None
    assert reader.error.code == 1064


@pytest.mark.parametrize(
    ("parameters", "columns", "eofs"), [(0, 0, 0), (2, 0, 1), (0, 1, 1), (1, 3, 2)]
)
def test_only_old_clients_get_an_eof_behind_each_list(parameters, columns, eofs):
    extra = len(answer(parameters, columns, OLD)) - len(answer(parameters, columns))
    assert extra == eofs * 9


def test_what_is_no_such_answer_is_refused():
    for payload in (b"\x01", b"\0\x01\0"):
        with pytest.raises(WireError):
            PrepareReader().feed(frame(payload, 1))
    with pytest.raises(WireError):
        PrepareReader().feed(b"\0\0\0\x01")


def test_nothing_is_read_behind_the_end():
    reader = PrepareReader()
    reader.feed(answer(0, 0))
    with pytest.raises(WireError):
        reader.feed(b"more")


def test_old_clients_read_the_warnings_in_the_eof():
    payloads = prepare_answer(1, [], [b"x"], capabilities=0, status=2, warnings=3)
    assert payloads[-1] == b"\xfe\3\0\2\0"
