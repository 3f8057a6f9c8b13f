"""Many hashes at once are those of the functions that make them one by one."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from xxhash import xxh64_intdigest

from streamfrom.spark.text_hashes import md5, texts_of, xxhash64


TEXTS = st.lists(st.binary(max_size=70), max_size=40)


def array(texts):
    return pa.array(texts, pa.large_binary())


def digests(texts):
    return [one.tobytes() for one in md5(array(texts))]


@given(TEXTS)
def test_hashes_are_those_of_each_text(texts):
    assert xxhash64(array(texts)).tolist() == [xxh64_intdigest(text) for text in texts]
    assert digests(texts) == [hashlib.md5(text).digest() for text in texts]


def test_texts_of_every_length_are_hashed():
    texts = [bytes(range(size)) for size in range(130)]
    assert xxhash64(array(texts)).tolist() == [xxh64_intdigest(text) for text in texts]
    assert digests(texts) == [hashlib.md5(text).digest() for text in texts]


def test_more_texts_than_a_chunk_holds_and_those_of_a_slice():
    texts = [b"%d" % (number * 7919) for number in range(20_000)]
    part = array(texts)[3:19_000]
    assert xxhash64(part).tolist() == [xxh64_intdigest(text) for text in texts[3:19_000]]
    assert [one.tobytes() for one in md5(part)[[0, 18_000]]] == [
        hashlib.md5(texts[place]).digest() for place in (3, 18_003)
    ]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([-(2**63), 0, None]), [b"-9223372036854775808", b"0", b""]),
        (pa.array([2**64 - 1], pa.uint64()), [b"18446744073709551615"]),
        (pa.array([10**19, -1], pa.decimal128(20, 0)), [b"10000000000000000000", b"-1"]),
        (pa.array(["é", None]), ["é".encode(), b""]),
        (pa.array([b"\x00"], pa.binary()), [b"\x00"]),
    ],
)  # fmt: skip
def test_a_value_is_hashed_by_the_text_that_a_server_sends(values, texts):
    assert texts_of(values).to_pylist() == texts


def test_what_has_no_such_text_is_refused():
    for values in (pa.array([0.5]), pa.array(np.array([True]))):
        with pytest.raises(TypeError, match="has no text"):
            texts_of(values)
