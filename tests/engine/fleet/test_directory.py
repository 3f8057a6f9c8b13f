import pytest

from streamfrom.engine.fleet.directory import (
    COLUMNS,
    DIFFER_NS,
    FORGET_NS,
    Directory,
    DirectoryRead,
    Member,
    Stranger,
    member_of,
)


NOW_NS = 10**12
MINE, THEIRS = 11, 12  # connections


def member(name, fleet="", version="1.0", configuration="c"):
    return Member(
        name, fleet, f"10.0.0.1:{ord(name)}", f"PEM {name}", 5, version, configuration
    )


A, B, C = map(member, "abc")


def read(*entries, holder=None, own=MINE, secret="s", outsider=None):
    return DirectoryRead(holder, own, entries, secret, outsider)


def test_a_row_survives_the_way_through_the_table_and_bytes_that_are_no_text_do_no_harm():
    assert len(A.values) == len(COLUMNS)
    assert member_of(A.values) == A
    row = member_of([b"\xff", *A.values[1:]])
    assert not isinstance(row, str)
    assert row.id == "\ufffd"


@pytest.mark.parametrize("value", [b"x", None])
def test_a_row_that_was_changed_by_hand_is_told_and_is_nobody(value):
    fields: list[bytes | None] = [*A.values]
    fields[COLUMNS.index(b"id_prefix")] = value
    fault = member_of(fields)
    assert fault == "the row of member 'a' in streamfrom.members was changed by hand"
    found = Directory(B).take(DirectoryRead(MINE, MINE, ((THEIRS, fault),)), NOW_NS)
    assert found.warnings == (fault,)
    assert found.joined == (B,)


def test_who_holds_the_lock_dispatches_and_for_a_moment_nobody_may():
    directory = Directory(A)
    found = directory.take(read((MINE, A), (THEIRS, B), holder=THEIRS), NOW_NS)
    assert (found.dispatcher, found.has_moved, found.joined) == (B, True, (A, B))
    assert not directory.take(read((MINE, A), (THEIRS, B), holder=THEIRS), NOW_NS).has_moved
    moved = directory.take(read((MINE, A), (None, B), holder=MINE), NOW_NS)
    assert (moved.dispatcher, moved.has_moved) == (A, True)
    free = directory.take(read((MINE, A), (None, B)), NOW_NS)
    assert (free.dispatcher, free.has_moved) == (None, True)
    without_rows = Directory(A).take(read(holder=MINE, secret=None), NOW_NS)
    assert (without_rows.dispatcher, without_rows.warnings) == (A, ())


def test_who_holds_a_lock_and_is_no_member_is_told_once_and_again_when_it_comes_back():
    directory = Directory(A)
    found = directory.take(read((MINE, A), holder=99), NOW_NS)
    assert found.dispatcher == Stranger(99, None)
    assert found.warnings == (
        "its messages are dispatched by connection 99 of the server, which is no member of a fleet",
    )
    assert directory.take(read((MINE, A), holder=99), NOW_NS).warnings == ()
    assert directory.take(read((MINE, A), holder=MINE), NOW_NS).warnings == ()
    assert directory.take(read((MINE, A), holder=99), NOW_NS).warnings == found.warnings
    directory, plain = Directory(A), read((MINE, A), holder=MINE, outsider=99)
    (warning,) = directory.take(plain, NOW_NS).warnings
    assert warning.startswith("connection 99 of another account holds the lock's plain name")
    assert directory.take(plain, NOW_NS).warnings == ()


def test_another_fleet_on_the_same_database_is_named_and_not_trusted():
    other = member("b", fleet="staging")
    directory = Directory(A)
    found = directory.take(read((MINE, A), (THEIRS, other), holder=THEIRS), NOW_NS)
    assert found.dispatcher == Stranger(THEIRS, "staging")
    assert found.warnings == ("its messages are dispatched by a member of fleet 'staging'",)
    assert found.joined == (A,)
    assert directory.trusts(other.certificate) is None


def test_a_second_proxy_without_the_table_is_told_what_to_create():
    found = Directory(A).take(read(holder=THEIRS, secret=None), NOW_NS)
    stranger, advice = found.warnings
    assert "connection 12" in stranger
    assert "CREATE DATABASE IF NOT EXISTS streamfrom; CREATE TABLE" in advice
    assert advice.endswith("ON streamfrom.* TO the shards' account")


def test_who_loses_the_directory_is_alone_with_the_lock_and_finds_the_others_in_it_again():
    directory = Directory(A)
    directory.take(read((MINE, A), (THEIRS, B), holder=THEIRS), NOW_NS)
    lost = directory.take(read(holder=THEIRS, secret=None), NOW_NS)
    assert (lost.forgotten, lost.dispatcher) == ((), Stranger(THEIRS, None))
    assert directory.trusts("PEM b") is None
    # The lock's name has become another one: it is this member's until the other one gives way.
    alone = directory.take(read(holder=MINE, secret=None), NOW_NS)
    assert (alone.dispatcher, alone.has_moved, alone.warnings) == (A, True, ())
    again = directory.take(read((MINE, A), (THEIRS, B), holder=THEIRS), NOW_NS)
    assert (again.joined, again.dispatcher, again.has_moved) == ((B,), B, True)
    assert directory.trusts("PEM b") == B


def test_who_has_been_gone_for_long_is_forgotten_unless_it_comes_back():
    directory, returned = Directory(A), Directory(A)
    read_all = read((MINE, A), (None, B), (THEIRS, C))
    assert directory.take(read_all, NOW_NS).forgotten == ()
    assert directory.take(read_all, NOW_NS + FORGET_NS - 1).forgotten == ()
    assert directory.take(read_all, NOW_NS + FORGET_NS).forgotten == ("b",)
    returned.take(read((MINE, A), (None, B)), NOW_NS)
    returned.take(read((MINE, A), (THEIRS, B)), NOW_NS + FORGET_NS // 2)
    assert returned.take(read((MINE, A), (None, B)), NOW_NS + FORGET_NS).forgotten == ()
    dead = [(None, member(chr(1000 + number))) for number in range(500)]
    directory.take(read((MINE, A), *dead), NOW_NS)
    found = directory.take(read((MINE, A), *dead), NOW_NS + FORGET_NS)
    assert (len(found.forgotten), found.joined) == (500, ())


def test_another_version_and_another_configuration_are_told_and_served_but_of_the_dead():
    other = member("b", version="1.1", configuration="d")
    directory, both = Directory(A), read((MINE, A), (THEIRS, other), holder=THEIRS)
    found = directory.take(both, NOW_NS)
    assert (found.dispatcher, found.warnings) == (other, ()), "it may be for a moment"
    assert directory.take(both, NOW_NS + DIFFER_NS - 1).warnings == ()
    assert directory.take(both, NOW_NS + DIFFER_NS).warnings == (
        "member b runs version 1.1, and this one 1.0",
        "member b has other keyspaces or vschemas in its configuration than this one",
    )
    assert directory.take(both, NOW_NS + 2 * DIFFER_NS).warnings == ()
    dead, directory = read((MINE, A), (None, other)), Directory(A)
    for now_ns in (NOW_NS, NOW_NS + DIFFER_NS):
        assert directory.take(dead, now_ns).warnings == ()
