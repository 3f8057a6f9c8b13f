from dataclasses import fields
from typing import get_args

from streamfrom.engine.fleet.peer_link import (
    AckEarly,
    DefinitionsChanged,
    Dispatching,
    FromDispatcher,
    News,
    RequestDone,
    ShowLeases,
    ToDispatcher,
)


def test_each_message_goes_one_way_and_says_which_stream_it_is_about_but_what_is_about_none():
    assert not set(get_args(ToDispatcher)) & set(get_args(FromDispatcher))
    without = {
        message
        for message in get_args(ToDispatcher | FromDispatcher)
        if fields(message)[0].name != "receiver"
    }
    requests = {DefinitionsChanged, ShowLeases, AckEarly, RequestDone}
    assert without == {News, Dispatching} | requests
