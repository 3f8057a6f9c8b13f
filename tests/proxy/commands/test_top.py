"""Keys as terminals send them; `tests/integration/test_admin.py` has the program on one."""

import ast
import io

import pytest

from streamfrom.proxy.commands.top import CannotTell, parse_address, split_keys, top
from tests.cases import cases


@cases(sent=str, keys=ast.literal_eval)
def test_an_escape_sequence_is_one_key(sent, keys):
    assert split_keys(sent) == keys


async def test_it_needs_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(CannotTell, match="needs a terminal; streamfrom queues prints lines"):
        await top(parse_address("mysql://root@127.0.0.1:1", {}), 1.0)
