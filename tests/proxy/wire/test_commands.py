import pytest

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire import commands
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, HEADER_BYTES
from streamfrom.proxy.wire.framing import frame


def test_an_execution_is_read_as_it_was_written_unless_it_is_cut():
    payload = commands.stmt_execute(1, 0x80, b"rest")[HEADER_BYTES:]
    assert commands.read_execute(payload) == commands.StmtExecute(1, 0x80, b"rest")
    for end in range(1, len(payload) - len(b"rest")):
        with pytest.raises(WireError):
            commands.read_execute(payload[:end])


@pytest.mark.parametrize("size", [0, 1, 300, FRAME_BYTES_MAX - 2, FRAME_BYTES_MAX - 1])
def test_a_text_of_any_size_goes_out_as_a_framed_command(size):
    assert commands.query(b"x" * size) == frame(b"\x03" + b"x" * size, 0)
