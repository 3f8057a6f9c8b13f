import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.errors import KeyspaceError, TargetError
from streamfrom.engine.sharding.keyspace import (
    KeyRange,
    Keyspace,
    Shard,
    Target,
    check_partition,
    parse_target,
)
from tests.cases import cases


EIGHT = "-20,20-40,40-60,60-80,80-a0,a0-c0,c0-e0,e0-"


def shards(names):
    return tuple(Shard.named(name) for name in names.split(","))


def keyspace(names):
    return Keyspace("ks", check_partition(shards(names)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [("-", "-"), ("0", "-"), ("00-", "00-"), ("-80", "-80"), ("40-80", "40-80"), ("-A0", "-a0"),
     ("80-", "80-"), ("-0080", "-0080")],
)  # fmt: skip
def test_valid_ranges(text, shown):
    assert str(KeyRange.parse(text)) == shown


@pytest.mark.parametrize(
    "text",
    ["", "11", "-1", "-111", "1-2", "x-80", "80-40", "40-40", "40-80-", "-00", "--", "-80\n"],
)
def test_invalid_ranges(text):
    with pytest.raises(KeyspaceError, match="invalid key range"):
        KeyRange.parse(text)


@pytest.mark.parametrize("text", ["-80", "00-80", "-8000", "0000-800000"])
def test_trailing_zeros_do_not_count(text):
    lower = KeyRange.parse(text)
    assert lower.contains(b"")
    assert lower.contains(b"\x00\x00")
    assert not lower.contains(b"\x80")
    assert not lower.contains(b"\x80\x00")


@given(st.binary(max_size=10))
def test_every_id_has_exactly_one_shard(ksid):
    owners = [shard for shard in shards(EIGHT) if shard.key_range.contains(ksid)]
    assert owners == [keyspace(EIGHT).shard_of(ksid)]


def test_an_unsharded_keyspace_owns_everything():
    for name in ("0", "-", "custom"):
        (shard,) = keyspace(name).shards
        assert keyspace(name).shard_of(b"\xff") == shard
        assert keyspace(name).shards_matching("0") == (shard,)
        assert keyspace(name).shards_matching("-") == (shard,)
        assert keyspace(name).shards_matching(name) == (shard,)
        assert not keyspace(name).sharded


def test_an_id_of_a_missing_shard_is_an_error():
    with pytest.raises(KeyspaceError, match="KeyspaceId 90 didn't match any shards"):
        Keyspace("ks", shards("-80")).shard_of(b"\x90")


@pytest.mark.parametrize(
    ("text", "names"),
    [("20-40", "20-40"), ("80-", "80-a0,a0-c0,c0-e0,e0-"), ("-", EIGHT), ("0", EIGHT),
     ("-40", "-20,20-40"), ("00-2000", "-20"), ("A0-C0", "a0-c0")],
)  # fmt: skip
def test_a_range_names_whole_shards(text, names):
    assert keyspace(EIGHT).shards_matching(text) == shards(names)


@pytest.mark.parametrize("text", ["10-18", "10-40", "1c-2a", "-10", "20-50", "f0-"])
def test_a_range_that_cuts_a_shard_is_an_error(text):
    with pytest.raises(KeyspaceError, match=f"keyrange {text} does not exactly match shards"):
        keyspace(EIGHT).shards_matching(text)


def test_an_unknown_shard_is_an_error():
    with pytest.raises(KeyspaceError, match="shard 'x' not found in keyspace 'ks'"):
        keyspace(EIGHT).shards_matching("x")
    with pytest.raises(KeyspaceError, match="shard '-10' not found in keyspace 'ks'"):
        keyspace(EIGHT).shard("-10")
    assert keyspace(EIGHT).shard("A0-C0").name == "a0-c0"


def test_a_partition_is_put_in_order():
    assert check_partition(shards("80-,-40,40-80")) == shards("-40,40-80,80-")


@cases(names=str, fault=str)
def test_gaps_and_overlaps_are_errors(names, fault):
    with pytest.raises(KeyspaceError) as failure:
        check_partition(shards(names))
    assert str(failure.value) == fault


def test_a_keyspace_needs_a_shard():
    with pytest.raises(KeyspaceError):
        check_partition(())


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("ks", Target("ks")),
        ("", Target("")),
        ("ks:-80@primary", Target("ks", shard="-80")),
        ("ks/-80", Target("ks", shard="-80")),
        ("ks[10-20]@primary", Target("ks", key_range=KeyRange(b"\x10", b"\x20"))),
        ("ks[-]", Target("ks", key_range=KeyRange(b"", b""))),
        ("ks[10-]", Target("ks", key_range=KeyRange(b"\x10", b""))),
        ("ks[-20]", Target("ks", key_range=KeyRange(b"", b"\x20"))),
        ("ks[deadbeef]@primary", Target("ks", keyspace_id=bytes.fromhex("deadbeef"))),
        (":-80@primary", Target("", shard="-80")),
        ("@replica", Target("", tablet_type="replica")),
        ("@PRIMARY", Target("")),
        ("@master", Target("")),
        ("ks:-80@replica|zone1-0000000101",
         Target("ks", shard="-80", tablet_type="replica", alias="zone1-0000000101")),
        ("ks@strange", Target("ks", tablet_type="unknown")),
    ],
)  # fmt: skip
def test_targets(text, target):
    assert parse_target(text) == target


@cases(text=str, fault=str)
def test_targets_that_cannot_be_read(text, fault):
    with pytest.raises(TargetError) as failure:
        parse_target(text)
    assert str(failure.value) == fault
