import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.constants import Capability
from streamfrom.proxy.wire.framing import frame, frames
from streamfrom.proxy.wire.prepare_response import PARAMETER, PrepareReader, prepare_answer
from streamfrom.proxy.wire.resultset import ColumnDefinition, column_definition
from tests.proxy.wire.streams import cut, places


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


@given(st.integers(0, 5), st.integers(0, 5), places)
def test_an_answer_cut_anywhere_reads_the_same(parameters, columns, places):
    reader = PrepareReader()
    rest = b""
    for piece in cut(answer(parameters, columns) + b"behind", places):
        if reader.done:
            rest += piece
        else:
            reader.feed(piece)
    assert reader.done
    assert reader.rest + rest == b"behind"
    assert (reader.statement_id, reader.warnings, reader.error) == (7, 3, None)
    assert reader.parameters == [column_definition(PARAMETER)] * parameters
    assert len(reader.columns) == columns


@pytest.mark.parametrize(
    ("parameters", "columns", "eofs"), [(0, 0, 0), (2, 0, 1), (0, 1, 1), (1, 3, 2)]
)
def test_only_old_clients_get_an_eof_behind_each_list_and_warnings_in_it(
    parameters, columns, eofs
):
    extra = len(answer(parameters, columns, OLD)) - len(answer(parameters, columns))
    assert extra == eofs * 9
    payloads = prepare_answer(1, [], [b"x"], capabilities=0, status=2, warnings=3)
    assert payloads[-1] == b"\xfe\3\0\2\0"


@pytest.mark.parametrize(
    "data", [frame(b"\x01", 1), frame(b"\0\x01\0", 1), b"\0\0\0\x01", answer(0, 0)]
)
def test_what_is_no_such_answer_or_stands_behind_one_is_refused(data):
    reader = PrepareReader()
    with pytest.raises(WireError):  # noqa: PT012 - which of them, the case says
        reader.feed(data)
        reader.feed(b"more")
