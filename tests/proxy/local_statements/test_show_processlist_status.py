import pytest

from streamfrom.proxy.local_statements.show_processlist import own_status, with_own_status
from streamfrom.proxy.wire.constants import Capability
from streamfrom.proxy.wire.resultset import text_row


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
