import pytest

from streamfrom.proxy.errors.wire_errors import (
    CannotUnpack,
    LocalDataDisabled,
    OutOfOrder,
    PacketTooLarge,
    WireError,
)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (WireError("no end"), "Malformed communication packet: no end"),
        (PacketTooLarge(), "Got a packet bigger than 'max_allowed_packet' bytes"),
        (OutOfOrder(), "Got packets out of order"),
        (LocalDataDisabled(on_mariadb=False), "Loading local data is disabled; this must be enabled on both the client and server" " sides"),
        (
            LocalDataDisabled(on_mariadb=True),
            "The used command is not allowed because the MariaDB server or client has disabled"
            " the local infile capability",
        ),
        (CannotUnpack(), "Couldn't uncompress communication packet"),
    ],
)  # fmt: skip
def test_sentences_are_those_of_mysql(error, sentence):
    assert str(error) == sentence


def test_disabled_local_data_has_the_code_of_the_server_at_hand():
    assert LocalDataDisabled(on_mariadb=False).wire_code() == (3948, "42000")
    assert LocalDataDisabled(on_mariadb=True).wire_code() == (4166, "HY000")
