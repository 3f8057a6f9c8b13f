import pytest

from streamfrom.proxy.local_statements.show_processlist import (
    Process,
    columns,
    own_status,
    rows,
    with_own_status,
)
from streamfrom.proxy.wire.constants import Capability
from streamfrom.proxy.wire.resultset import text_row
from tests.sqlparse_ext.facts import shape


BUSY = Process(
    9, "ann", "10.0.0.1", "commerce", "Query", 3, "executing", b"SELECT " + b"x" * 200
)
IDLE = Process(7, "ann", "localhost", None, "Sleep", 12, "", None)


def test_clients_come_in_order_of_their_ids_and_bytes_that_are_no_text_as_such():
    idle, busy = rows(shape("SHOW PROCESSLIST"), [BUSY, IDLE], on_mariadb=False)
    assert idle == (b"7", b"ann", b"localhost", None, b"Sleep", b"12", b"", None)
    assert busy[:7] == (b"9", b"ann", b"10.0.0.1", b"commerce", b"Query", b"3", b"executing")
    assert len(idle) == len(columns(on_mariadb=False))
    odd = Process(1, "a", "h", None, "Query", 0, "executing", b"SELECT '\xff'")
    assert (
        rows(shape("SHOW PROCESSLIST"), [odd], on_mariadb=False)[0][7]
        == "SELECT '\N{REPLACEMENT CHARACTER}'".encode()
    )


def test_what_the_client_has_stands_in_the_place_of_what_the_server_has():
    rows = [
        (b"Ssl_cipher", b""),
        (b"Ssl_version", None),
        (b"Uptime", b"5"),
        (b"Compression", b"OFF"),
    ]
    own = own_status(("AES", "TLSv1.3"), Capability.COMPRESS)
    assert with_own_status(map(text_row, rows), own) == [
        text_row((b"Ssl_cipher", b"AES")),
        text_row((b"Ssl_version", b"TLSv1.3")),
        text_row((b"Uptime", b"5")),
        text_row((b"Compression", b"ON")),
    ]


@pytest.mark.parametrize(
    ("capabilities", "told"),
    [
        (0, (b"OFF", b"")),
        (Capability.COMPRESS, (b"ON", b"zlib")),
        (Capability.ZSTD_COMPRESSION, (b"ON", b"zstd")),
        (Capability.COMPRESS | Capability.ZSTD_COMPRESSION, (b"ON", b"zlib")),
    ],
)
def test_what_is_packed_is_told_with_its_algorithm(capabilities, told):
    own = own_status(("", ""), capabilities)
    assert (own[b"compression"], own[b"compression_algorithm"]) == told
