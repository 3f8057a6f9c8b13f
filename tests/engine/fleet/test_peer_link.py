from dataclasses import FrozenInstanceError, fields
from typing import get_args

import pytest

from streamfrom.engine.fleet.peer_link import (
    AckEarly,
    DefinitionsChanged,
    Dispatching,
    FromDispatcher,
    News,
    RequestDone,
    RowsSent,
    RowsTaken,
    ShowLeases,
    ToDispatcher,
)


def test_messages_are_values_that_nobody_changes():
    assert RowsSent(1, 0, (b"x",)) == RowsSent(1, 0, (b"x",))
    with pytest.raises(FrozenInstanceError):
        RowsTaken(1, 2).rows = 3  # type: ignore[misc]


def test_each_message_goes_one_way():
    assert not set(get_args(ToDispatcher)) & set(get_args(FromDispatcher))


def test_each_message_says_which_stream_it_is_about_but_what_is_about_none():
    without = {
        message
        for message in get_args(ToDispatcher | FromDispatcher)
        if fields(message)[0].name != "stream"
    }
    requests = {DefinitionsChanged, ShowLeases, AckEarly, RequestDone}
    assert without == {News, Dispatching} | requests
