from contextlib import suppress
from dataclasses import fields
from typing import get_args

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, strategies as st

from streamfrom.engine.fleet.peer_link import (
    FromDispatcher,
    News,
    OpenStream,
    RowsTaken,
    ToDispatcher,
)
from streamfrom.engine.messaging.dispatch.events import AckedUnnamed, TableEvent
from streamfrom.engine.messaging.table.message import AUTO, MessageKey
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.grpc_links import (
    FROM_DISPATCHER,
    TO_DISPATCHER,
)


number = st.integers(0, 2**63 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]))
ids = st.lists(st.binary(max_size=9), max_size=3).map(tuple)
texts = st.lists(text, max_size=3).map(tuple)
keys = st.builds(
    MessageKey,
    st.binary(),
    st.integers(-(2**31), 2**31),
    st.integers(0, 2**63 - 1),
    st.just(b""),
)
# By what a field is declared as.
KINDS = {
    "bool": st.booleans(),
    "bytes": st.binary(),
    "int": number,
    "int | None": st.none() | number,
    "str": text,
    "ShardName": text,
    "Mapping[ShardName, tuple[bytes, ...]]": st.dictionaries(text, ids),
    "tuple[MessageKey, ...]": st.lists(keys, max_size=3).map(tuple),
    "tuple[ShardName, ...]": texts,
    "tuple[events.TableEvent, ...]": st.deferred(
        lambda: st.lists(any_of(TableEvent), max_size=3).map(tuple)
    ),
    "tuple[bytes, ...]": ids,
    "tuple[bytes, ...] | None": st.none() | ids,
    "tuple[str, ...]": texts,
}
NARROWER = {
    (OpenStream, "keys"): st.none() | ids.filter(bool),
    (OpenStream, "prefetch"): st.none() | st.just(AUTO) | number,
}


def one_of(made):
    return st.builds(
        made,
        **{
            field.name: NARROWER.get((made, field.name), KINDS[str(field.type)])
            for field in fields(made)
        },
    )


def any_of(union):
    return st.one_of(list(map(one_of, get_args(union))))


@pytest.mark.parametrize(
    ("made", "encode", "decode"),
    [
        *((made, TO_DISPATCHER.encode, TO_DISPATCHER.decode) for made in get_args(ToDispatcher)),
        *((made, FROM_DISPATCHER.encode, FROM_DISPATCHER.decode) for made in get_args(FromDispatcher)),
    ],
)  # fmt: skip
@given(st.data())
def test_each_thing_that_members_say_comes_as_it_was_sent(made, encode, decode, data):
    messages = data.draw(st.lists(one_of(made), min_size=1, max_size=3))
    assert decode(encode(messages)) == messages


@pytest.mark.parametrize("data", [b"", b"\xfa\x01\x00"])
def test_a_message_of_a_kind_that_is_unknown_is_passed_over(data):
    following = RowsTaken(1, 2)
    data += pb.ToDispatcher(
        more=[pb.ToDispatcher.FromString(TO_DISPATCHER.encode([following]))]
    ).SerializeToString()
    assert TO_DISPATCHER.decode(data) == [None, following]
    assert FROM_DISPATCHER.decode(b"") == [None]


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\xff"])
def test_what_is_no_message_is_refused(data):
    with pytest.raises(DecodeError):
        TO_DISPATCHER.decode(data)
    with pytest.raises(DecodeError):
        FROM_DISPATCHER.decode(data)


def test_news_of_a_kind_that_is_unknown_are_left_out():
    known = pb.TableEvent(shard="1", acked_unnamed={})
    news = pb.News(keyspace="ks", table="t", events=[pb.TableEvent(shard="0"), known])
    data = pb.ToDispatcher(news=news).SerializeToString()
    assert TO_DISPATCHER.decode(data) == [News("ks", "t", (AckedUnnamed("1"),))]


@given(st.binary())
def test_bytes_of_a_stranger_do_no_harm(data):
    for decode in (TO_DISPATCHER.decode, FROM_DISPATCHER.decode):
        with suppress(DecodeError):
            decode(data)
