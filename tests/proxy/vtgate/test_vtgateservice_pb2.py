"""The generated code is that of vtgateservice.proto, and its numbers are those of Vitess 5."""

from streamfrom.proxy.vtgate import vtgateservice_pb2 as pb
from tests.proxy.generated import assert_generated


def test_generated_code_is_that_of_the_proto(tmp_path):
    assert_generated("vtgate/vtgateservice.proto", tmp_path)


def test_a_request_of_vitess_5_is_understood_byte_for_byte():
    # caller_id 1, keyspace 2, shard 3, key_range 4, name 5
    sent = b"\x0a\x03\x0a\x01p\x12\x02ks\x1a\x0380-\x22\x03\x0a\x01\x80\x2a\x01m"
    request = pb.MessageStreamRequest.FromString(sent)
    assert request.caller_id.principal == "p"
    assert (request.keyspace, request.shard, request.name) == ("ks", "80-", "m")
    assert request.key_range.start == b"\x80"
    ack = pb.MessageAckRequest.FromString(b"\x12\x02ks\x1a\x01m\x22\x06\x08\x89\x02\x12\x015")
    assert (ack.keyspace, ack.name) == ("ks", "m")
    assert [(each.type, each.value) for each in ack.ids] == [(pb.INT64, b"5")]
