"""The vectors are those of Vitess's own tests; the proxy's vindexes say the rest."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.engine.sharding.vindex import make_vindex
from streamfrom.spark.keyspace_ids import KeyspaceIdError, Shards, keyspace_ids


EIGHT = ("-20", "20-40", "40-60", "60-80", "80-a0", "a0-c0", "c0-e0", "e0-")


def hexes(ids):
    return [None if value is None else value.hex() for value in ids.to_pylist()]


@pytest.mark.parametrize(
    ("vindex", "value", "ksid"),
    [
        ("hash", -(2**63), "95f8a5e5dd31d900"),
        ("numeric", -1, None),
        ("xxhash", "test1", "d01ab7e4d6978f0b"),
        ("binary_md5", "Test", "0cbc6611f5540bd0809a388dc95a615b"),
        ("binary_md5", b"\x00\xff", "d07d34efac6328007ad67c7e0a985e00"),
    ],
)
def test_vectors(vindex, value, ksid):
    assert hexes(keyspace_ids(pa.array([value]), vindex)) == [ksid]


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64(), pa.decimal128(20, 0),
     pa.decimal128(3, 0)],
)  # fmt: skip
@pytest.mark.parametrize("vindex", ["hash", "numeric", "xxhash", "binary_md5"])
def test_the_type_of_a_number_makes_no_difference(kind, vindex):
    expected = keyspace_ids(pa.array([1, None, 100], pa.int64()), vindex)
    values = [Decimal(1), None, Decimal(100)] if pa.types.is_decimal(kind) else [1, None, 100]
    assert keyspace_ids(pa.array(values, kind), vindex).equals(expected)


def test_unsigned_numbers_by_jdbc_are_decimals():
    values = pa.array([Decimal(2**64 - 1), Decimal(-1)], pa.decimal128(20, 0))
    assert hexes(keyspace_ids(values)) == ["355550b2150e2451"] * 2
    assert hexes(keyspace_ids(values, "numeric")) == ["f" * 16, None]


def test_a_slice_is_read_from_where_it_begins():
    for kind, of in ((pa.int64(), int), (pa.decimal128(20, 0), Decimal)):
        whole = pa.array([of(value) for value in range(10)], kind)
        assert keyspace_ids(whole[3:5]).equals(keyspace_ids(whole)[3:5])
        owners = Shards.named(EIGHT)
        assert owners.owning(keyspace_ids(whole)[3:5]).equals(
            owners.owning(keyspace_ids(whole))[3:5]
        )


@given(
    vindex=st.sampled_from(["hash", "numeric", "xxhash", "binary_md5"]),
    values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=30),
    names=st.sampled_from([("-",), ("-80", "80-"), ("-40", "40-80", "80-"), EIGHT]),
)
def test_ids_and_shards_are_those_of_the_proxy(vindex, values, names):
    found = keyspace_ids(pa.array(values, pa.int64()), vindex)
    ours = make_vindex(vindex)
    expected = [ours.map(value) for value in values]
    assert found.to_pylist() == expected
    keyspace = Keyspace("ks", tuple(Shard.named(name) for name in names))
    assert Shards.named(names[::-1]).owning(found).to_pylist() == [
        None if ksid is None else keyspace.shard_of(ksid).name for ksid in expected
    ]


def test_an_id_that_is_shorter_than_a_bound_is_filled_with_zeros():
    ids = pa.array([b"", b"\x7f\xff", b"\x80", b"\x80\x00\x00"], pa.binary())
    assert Shards.named(["-80", "80-"]).owning(ids).to_pylist() == ["-80", "-80", "80-", "80-"]


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (["-80"], "no shard of -80 reaches the last keyspace id"),
        (["-80", "90-"], "do not cover all keyspace ids once: see '90-'"),
        (["-80", "40-"], "do not cover all keyspace ids once: see '40-'"),
        (["80"], "'80' is no key range"),
        (["-8z", "8z-"], "'8z' is not hexadecimal"),
        (["-" + "1" * 18, "1" * 18 + "-"], "longer than 8 bytes"),
        ([], "no shard of  reaches"),
    ],
)
def test_shards_that_are_none(names, fault):
    with pytest.raises(KeyspaceIdError, match=fault):
        Shards.named(names)


@pytest.mark.parametrize(
    ("values", "vindex", "fault"),
    [
        (pa.array([1]), "reverse", "vindex 'reverse' is none of those known here: binary_md5"),
        (pa.array(["1"]), "hash", "a column of string has no numbers; cast it"),
        (pa.array([1.5]), "hash", "a column of double has no numbers"),
        (pa.array([1.5]), "xxhash", "a column of double has no keyspace ids by its text"),
        (pa.array([Decimal(2**64)], pa.decimal128(22, 0)), "hash", "is not within 64 bits"),
        (pa.array([Decimal("1.5")]), "hash", "has no numbers"),
    ],
)
def test_what_has_no_keyspace_id_is_an_error(values, vindex, fault):
    with pytest.raises(KeyspaceIdError, match=fault):
        keyspace_ids(values, vindex)
