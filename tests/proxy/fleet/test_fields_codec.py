"""What a class and a message share by name; the codecs made of it have properties of their own."""

from dataclasses import dataclass

import pytest

from streamfrom.engine.messaging.dispatch.events import Changed
from streamfrom.engine.messaging.figures.figures import SetAsideFigures
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.fields_codec import FieldsCodec, OneOfCodec


def test_a_moment_travels_as_its_age_also_one_to_come():
    codec = FieldsCodec(SetAsideFigures, pb.SetAsideRow)
    row = SetAsideFigures("ks", "q", "0", "1", "ack", "no", since_ns=90, next_ns=130, tries=1)
    message = codec.encode(row, now_ns=100)
    assert (message.since_ns, message.next_ns) == (10, -30)
    found = codec.decode(message, now_ns=1000)
    assert (found.since_ns, found.next_ns) == (990, 1030)


def test_a_class_that_lacks_a_field_is_noticed_at_once_and_an_unknown_kind_is_none():
    @dataclass
    class Lacking:
        shard: str

    with pytest.raises(KeyError, match="ids"):
        FieldsCodec(Lacking, pb.Held)
    codec = OneOfCodec(pb.TableEvent, (), {})
    assert codec.decode(pb.TableEvent(shard="0", acked=pb.Ids())) is None
    with pytest.raises(KeyError):
        codec.encode(Changed("0"))
