"""The vectors are those of Vitess's own tests."""

import pytest

from streamfrom.engine.sharding.vindex import make_vindex
from streamfrom.sqlparse_ext.literal_values import Number


LOOSE = [
    *[(text, "42d21361087a4c07", "0b5edbb401fd7524393690491d64f1f5")
      for text in ("Test", "TEst", "TEST", "T\u00e9st", "Test".replace("e", "e\u0301"), "Test ")],
    ("B\u00e9st", "926975b9ce2ec316", "c2b2332e4f73d00741026249706f2fb6"),
    (" Test", "4fcb8be34ec05775", "a2e3515c7e8df1ffd2ccfc11c6b19dd1"),
    ("Test\t", "20af87fc36e3fd51", "82456dd87a9c7a02b1c2056b5abaa272"),
    ("T\u00e9stLooong", "d3ea873942b484a7", "9683e12b80430cd453f5dfdfba81c9a5"),
    ("", "99e9d85137db46ef", "d41d8cd98f00b204e9800998ecf8427e"),
    # No text whose key it can tell.
    ("\u65e5\u672c", None, None),
]  # fmt: skip
VECTORS: dict[str, list[tuple[object, str | None]]] = {
    "hash": [
        (1, "166b40b44aba4bd6"), (2, "06e7ea22ce92708f"), (3, "4eb190c9a2fa169c"),
        (4, "d2fd8867d50d2dfe"), (5, "70bb023c810ca87a"), (6, "f098480ac4c4be71"),
        (0, "8ca64de9c1b123a7"), (-1, "355550b2150e2451"), (2**64 - 1, "355550b2150e2451"),
        (2**63 - 1, "f77d48aadda1f1bb"), (-(2**63), "95f8a5e5dd31d900"),
        (7, "fb8baaad918119b8"), (1000, "1f7db68037e0ff5a"),
        (b"1", "166b40b44aba4bd6"), (b"-1", "355550b2150e2451"),
        *((value, None) for value in (None, b"aa", b"", b"1.0", b" 1", Number("1.1"), 2**64, -(2**63) - 1)),
    ],
    "numeric": [
        (1, "0000000000000001"), (8, "0000000000000008"), (2**64 - 1, "f" * 16), (b"8", "0000000000000008"),
        (-1, None), (2**64, None), (None, None), (Number("1.1"), None),
    ],
    "reverse_bits": [
        (1, "8000000000000000"), (2, "4000000000000000"), (3, "c000000000000000"),
        (4, "2000000000000000"), (5, "a000000000000000"), (6, "6000000000000000"), (None, None),
    ],
    "binary": [(b"test1", "7465737431"), (None, ""), (12, "3132"), (Number("1.5"), "312e35")],
    "xxhash": [
        (b"test1", "d01ab7e4d6978f0b"), (b"test2", "87eb11714c0a0e89"),
        (b"testaverylongvaluetomakesurethisworks", "81d8c38e0d850e6a"),
        (1, "d46405367612b4b7"), (None, "99e9d85137db46ef"), (-1, "d8e2a6a7c8c7623d"),
        (2**64 - 1, "477cfa8d6d8f1f8d"), (2**63 - 1, "b37eb01f7bffafd8"),
        (-(2**63), "102c27ddb26a609e"),
    ],
    "binary_md5": [
        (b"test1", "5a105e8b9d40e1329780d62ea2265d8a"), (b"TEST", "033bd94b1168d7e4f0d644c3c95e35bf"),
        (b"Test", "0cbc6611f5540bd0809a388dc95a615b"), (None, "d41d8cd98f00b204e9800998ecf8427e"),
    ],
    "unicode_loose_xxhash": [(None, LOOSE[-2][1]), (b"\xff", None), *((text.encode(), ksid) for text, ksid, _ in LOOSE)],
    "unicode_loose_md5": [(None, LOOSE[-2][2]), (b"\xff", None), *((text.encode(), ksid) for text, _, ksid in LOOSE)],
    "null": [(value, "00") for value in (1, b"x", None, Number("1.1"))],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "ksid"),
    [(kind, *vector) for kind, vectors in VECTORS.items() for vector in vectors],
)
def test_an_id_is_that_of_vitess_and_what_has_none_is_owned_by_nobody(kind, value, ksid):
    found = make_vindex(kind).map(value)
    assert (None if found is None else found.hex()) == ksid
