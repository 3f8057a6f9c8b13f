import contextlib

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire import commands
from streamfrom.proxy.wire.commands import parse_command
from streamfrom.proxy.wire.constants import FRAME_BYTES_MAX, Command
from streamfrom.proxy.wire.framing import frame


@pytest.mark.parametrize(
    ("payload", "command"),
    [
        (b"\x01", Command.QUIT),
        (b"\x02shop", commands.InitDb(b"shop")),
        (b"\x03select 1", commands.Query(b"select 1")),
        (b"\x04t\0%a", commands.FieldList(b"t", b"%a")),
        (b"\x09", Command.STATISTICS),
        (b"\x0c\x07\0\0\0", commands.ProcessKill(7)),
        (b"\x0d", Command.DEBUG),
        (b"\x0e", Command.PING),
        (b"\x11root\0", commands.ChangeUser(b"\x11root\0")),
        (b"\x16select ?", commands.StmtPrepare(b"select ?")),
        (b"\x17\1\0\0\0\1\1\0\0\0rest", commands.StmtExecute(1, 1, b"rest")),
        (b"\x18\1\0\0\0\2\0data", commands.StmtSendLongData(1, 2, b"data")),
        (b"\x19\1\0\0\0", commands.StmtClose(1)),
        (b"\x1a\1\0\0\0", commands.StmtReset(1)),
        (b"\x1b\0\0", commands.SetOption(multi_statements=True)),
        (b"\x1b\1\0", commands.SetOption(multi_statements=False)),
        (b"\x1c\1\0\0\0\x0a\0\0\0", commands.StmtFetch(1, 10)),
        (b"\x1b\2\0", commands.Unknown(0x1B)),
        (b"\x07\4", commands.Refresh(b"\x07\4")),
        (b"\x0a", Command.PROCESS_INFO),
        (b"\x1f", Command.RESET_CONNECTION),
        (b"\x12anything", commands.Unknown(0x12)),
        (b"\xfa\1\0\0\0\x80\0rows", commands.StmtBulkExecute(1, 0x80, b"rows")),
        (b"\xfb", commands.Unknown(0xFB)),
    ],
)
def test_commands_are_read(payload, command):
    assert parse_command(payload) == command


@pytest.mark.parametrize(
    "payload", [b"", b"\x04t", b"\x0c\1", b"\xfa\1\0\0\0\1", b"\x17\1\0\0\0"]
)
def test_broken_commands_are_refused(payload):
    with pytest.raises(WireError):
        parse_command(payload)


@given(payload=st.binary(max_size=40))
def test_noise_raises_nothing_but_wire_errors(payload):
    with contextlib.suppress(WireError):
        parse_command(payload)


@pytest.mark.parametrize("size", [0, 1, 300, FRAME_BYTES_MAX - 2, FRAME_BYTES_MAX - 1])
def test_a_text_of_any_size_goes_out_as_a_framed_command(size):
    assert commands.query(b"x" * size) == frame(b"\x03" + b"x" * size, 0)
