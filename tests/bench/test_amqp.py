"""The lean client of AMQP, as far as no broker is needed."""

import struct

import pytest

from bench.rivals.amqp import BODY, DELIVER, HEADER, METHOD, AmqpConnection, Broken


def frame(kind, payload):
    return struct.pack(">BHI", kind, 1, len(payload)) + payload + b"\xce"


def delivery(tag, body):
    method = struct.pack(">HH", *DELIVER) + b"\x03ctg" + struct.pack(">QB", tag, 0) + b"\0\x01q"
    parts = (
        frame(BODY, body[:5]) + frame(BODY, body[5:]) if len(body) > 5 else frame(BODY, body)
    )
    return frame(METHOD, method) + frame(HEADER, struct.pack(">HHQ", 60, 0, len(body))) + parts


@pytest.mark.parametrize("size", [1, 7, 8, 50, 1000])
async def test_messages_are_found_however_their_bytes_come(size):
    data = delivery(1, b"one") + delivery(2, b"the second")
    connection = AmqpConnection()
    for start in range(0, len(data), size):
        connection.data_received(data[start : start + size])
    assert [(tag, body) for _, tag, body in await connection.batches()] == [
        (1, b"one"),
        (2, b"the second"),
    ]


async def test_who_waits_for_a_message_learns_that_the_connection_is_closed():
    connection = AmqpConnection()
    connection.connection_lost(None)
    with pytest.raises(Broken):
        await connection.batches()
