import pytest

from proxy.errors.wire import CannotUnpack, OutOfOrder, PacketTooLarge, WireError


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (WireError("no end"), "Malformed communication packet: no end"),
        (PacketTooLarge(9), "Got a packet bigger than 'max_allowed_packet' bytes"),
        (OutOfOrder(3, 1), "Got packets out of order"),
        (CannotUnpack(), "Couldn't uncompress communication packet"),
    ],
)
def test_sentences_are_those_of_mysql(error, sentence):
    assert str(error) == sentence


def test_what_breaks_the_protocol_is_a_wire_error():
    for kind in (PacketTooLarge, OutOfOrder, CannotUnpack):
        assert issubclass(kind, WireError)
