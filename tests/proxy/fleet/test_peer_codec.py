from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.fleet import peer_link
from streamfrom.engine.fleet.peer_link import (
    AckEarly,
    CloseStream,
    DefinitionsChanged,
    Dispatching,
    ForgetStream,
    GiveShare,
    News,
    OpenStream,
    ProgressElsewhere,
    RequestDone,
    RowsSent,
    RowsTaken,
    ShareKept,
    ShareWanted,
    StopWaiting,
    StreamEnded,
    StreamFinished,
    StreamProgressed,
    WantLeases,
)
from streamfrom.engine.messaging.dispatch.events import Acked, AckedUnnamed, Changed, Due
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.proxy.fleet.members_pb2 import News as PbNews, TableEvent, ToDispatcher
from streamfrom.proxy.fleet.peer_codec import (
    FIRST_PROTOCOL,
    FROM_DISPATCHER,
    PROTOCOL,
    TO_DISPATCHER,
    PeerMessageUnreadable,
    decode_from_dispatcher,
    decode_to_dispatcher,
    encode_from_dispatcher,
    encode_to_dispatcher,
    is_known,
)


number = st.integers(0, 2**63)
text = st.text(st.characters(exclude_categories=["Cs"]))
ids = st.lists(st.binary()).map(tuple)
held = st.dictionaries(text, ids)
keys = st.builds(
    MessageKey,
    st.binary(),
    st.integers(-(2**31), 2**31),
    st.integers(0, 2**63 - 1),
    st.just(b""),
)
event = st.one_of(
    st.builds(Due, text, st.lists(keys).map(tuple)),
    st.builds(Acked, text, ids),
    st.builds(Changed, text, st.none() | ids, st.booleans()),
    st.builds(AckedUnnamed, text),
)
to_dispatcher = st.one_of(
    st.builds(
        OpenStream, number, text, text, st.lists(text).map(tuple), st.lists(text).map(tuple),
        st.none() | number, st.none() | number, number, st.none() | ids.filter(bool), held,
        st.none() | number,
    ),
    st.builds(GiveShare, number, number),
    st.builds(ProgressElsewhere, number, number),
    st.builds(RowsTaken, number, number),
    st.builds(CloseStream, number, number),
    st.builds(ForgetStream, number, st.booleans()),
    st.builds(StopWaiting, number),
    st.builds(News, text, text, st.lists(event).map(tuple)),
    st.builds(Dispatching, text, text),
    st.builds(DefinitionsChanged, number, text),
    st.builds(WantLeases, number, text, text, text, st.none() | ids),
    st.builds(AckEarly, number, text, text, text, ids, number),
)  # fmt: skip
from_dispatcher = st.one_of(
    st.builds(RowsSent, number, number, ids),
    st.builds(StreamEnded, number, text, held),
    st.builds(StreamFinished, number),
    st.builds(ShareKept, number, number),
    st.builds(ShareWanted, number),
    st.builds(StreamProgressed, number, number),
    st.builds(RequestDone, number, st.none() | number),
)


@given(st.lists(to_dispatcher, min_size=1, max_size=3))
def test_what_a_member_says_comes_as_it_was_sent(messages):
    assert decode_to_dispatcher(encode_to_dispatcher(messages)) == messages


@given(st.lists(from_dispatcher, min_size=1, max_size=3))
def test_what_a_dispatcher_says_comes_as_it_was_sent(messages):
    assert decode_from_dispatcher(encode_from_dispatcher(messages)) == messages


def test_no_message_is_left_out():
    assert TO_DISPATCHER.classes == set(get_args(peer_link.ToDispatcher))
    assert FROM_DISPATCHER.classes == set(get_args(peer_link.FromDispatcher))


@given(to_dispatcher)
def test_one_message_is_what_the_first_protocol_sent(message):
    assert not ToDispatcher.FromString(encode_to_dispatcher([message])).more


def test_what_came_later_is_known_to_no_older_member():
    want = WantLeases(1, "ks", "t", "0", None)
    assert is_known(want, PROTOCOL)
    assert not is_known(want, FIRST_PROTOCOL)
    assert not is_known(ProgressElsewhere(1, 2), PROTOCOL - 1)
    assert is_known(StopWaiting(1), FIRST_PROTOCOL)


@pytest.mark.parametrize("data", [b"", b"\xfa\x01\x00"])
def test_a_message_of_a_kind_that_is_unknown_is_passed_over(data):
    following = RowsTaken(1, 2)
    data += ToDispatcher(
        more=[ToDispatcher.FromString(encode_to_dispatcher([following]))]
    ).SerializeToString()
    assert decode_to_dispatcher(data) == [None, following]
    assert decode_from_dispatcher(b"") == [None]


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\xff"])
def test_what_is_no_message_is_refused(data):
    with pytest.raises(PeerMessageUnreadable):
        decode_to_dispatcher(data)
    with pytest.raises(PeerMessageUnreadable):
        decode_from_dispatcher(data)


def test_news_of_a_kind_that_is_unknown_are_left_out():
    known = TableEvent(shard="1", acked_unnamed={})
    news = PbNews(keyspace="ks", table="t", events=[TableEvent(shard="0"), known])
    data = ToDispatcher(news=news).SerializeToString()
    assert decode_to_dispatcher(data) == [News("ks", "t", (AckedUnnamed("1"),))]


@given(st.binary())
def test_bytes_of_a_stranger_do_no_harm(data):
    for decode in (decode_to_dispatcher, decode_from_dispatcher):
        with suppress(PeerMessageUnreadable):
            decode(data)
