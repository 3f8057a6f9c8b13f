import pytest

from streamfrom.engine.fleet.directory import (
    COLUMNS,
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


def test_a_row_survives_the_way_through_the_table():
    assert len(A.values) == len(COLUMNS)
    assert member_of(A.values) == A


@pytest.mark.parametrize("value", [b"x", None])
def test_a_row_that_was_changed_by_hand_is_told_and_is_nobody(value):
    fields: list[bytes | None] = [*A.values]
    fields[COLUMNS.index(b"id_prefix")] = value
    fault = member_of(fields)
    assert fault == "the row of member 'a' in streamfrom.members was changed by hand"
    found = Directory(B).take(DirectoryRead(MINE, MINE, ((THEIRS, fault),)), NOW_NS)
    assert found.warnings == (fault,)
    assert found.joined == (B,)


def test_bytes_that_are_no_text_in_a_row_do_no_harm():
    row = member_of([b"\xff", *A.values[1:]])
    assert not isinstance(row, str)
    assert row.id == "�"


def test_who_holds_the_lock_dispatches():
    directory = Directory(A)
    found = directory.take(read((MINE, A), (THEIRS, B), holder=THEIRS), NOW_NS)
    assert found.dispatcher == B
    assert found.has_moved
    assert found.joined == (A, B)
    assert not directory.take(read((MINE, A), (THEIRS, B), holder=THEIRS), NOW_NS).has_moved
    moved = directory.take(read((MINE, A), (None, B), holder=MINE), NOW_NS)
    assert (moved.dispatcher, moved.has_moved, moved.left) == (A, True, (B,))


def test_nobody_holds_it_for_a_moment():
    directory = Directory(A)
    directory.take(read((MINE, A), (THEIRS, B), holder=THEIRS), NOW_NS)
    found = directory.take(read((MINE, A), (None, B)), NOW_NS)
    assert (found.dispatcher, found.has_moved) == (None, True)


def test_without_rows_the_reader_knows_itself():
    found = Directory(A).take(read(holder=MINE, secret=None), NOW_NS)
    assert found.dispatcher == A
    assert found.warnings == ()


def test_a_stranger_is_told_once_and_again_when_it_comes_back():
    directory = Directory(A)
    found = directory.take(read((MINE, A), holder=99), NOW_NS)
    assert found.dispatcher == Stranger(99, None)
    assert found.warnings == (
        "its messages are dispatched by connection 99 of the server, which is no member of a fleet",
    )
    assert directory.take(read((MINE, A), holder=99), NOW_NS).warnings == ()
    assert directory.take(read((MINE, A), holder=MINE), NOW_NS).warnings == ()
    assert directory.take(read((MINE, A), holder=99), NOW_NS).warnings == found.warnings


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
    assert (lost.left, lost.forgotten, lost.dispatcher) == ((B,), (), Stranger(THEIRS, None))
    assert directory.trusts("PEM b") is None
    # The lock's name has become another one: it is this member's until the other one gives way.
    alone = directory.take(read(holder=MINE, secret=None), NOW_NS)
    assert (alone.dispatcher, alone.has_moved, alone.warnings) == (A, True, ())
    again = directory.take(read((MINE, A), (THEIRS, B), holder=THEIRS), NOW_NS)
    assert (again.joined, again.dispatcher, again.has_moved) == ((B,), B, True)
    assert directory.trusts("PEM b") == B


def test_a_connection_of_another_account_that_holds_the_plain_name_is_reported_once():
    directory = Directory(A)
    (warning,) = directory.take(read((MINE, A), holder=MINE, outsider=99), NOW_NS).warnings
    assert warning.startswith("connection 99 of another account holds the lock's plain name")
    assert directory.take(read((MINE, A), holder=MINE, outsider=99), NOW_NS).warnings == ()


def test_a_certificate_is_trusted_as_long_as_its_row_is_there():
    directory = Directory(A)
    directory.take(read((MINE, A), (THEIRS, B)), NOW_NS)
    assert directory.trusts("PEM b") == B
    # Its connection is gone for a moment, as after a restart of the server; its row is not.
    directory.take(read((MINE, A), (None, B)), NOW_NS)
    assert directory.trusts("PEM b") == B
    directory.take(read((MINE, A)), NOW_NS)
    assert directory.trusts("PEM b") is None
    assert directory.trusts("PEM x") is None


def test_who_has_been_gone_for_long_is_forgotten():
    directory = Directory(A)
    assert directory.take(read((MINE, A), (None, B), (THEIRS, C)), NOW_NS).forgotten == ()
    again = read((MINE, A), (None, B), (THEIRS, C))
    assert directory.take(again, NOW_NS + FORGET_NS - 1).forgotten == ()
    assert directory.take(again, NOW_NS + FORGET_NS).forgotten == ("b",)


def test_who_comes_back_is_not_forgotten():
    directory = Directory(A)
    directory.take(read((MINE, A), (None, B)), NOW_NS)
    directory.take(read((MINE, A), (THEIRS, B)), NOW_NS + FORGET_NS // 2)
    assert directory.take(read((MINE, A), (None, B)), NOW_NS + FORGET_NS).forgotten == ()


def test_a_table_full_of_the_dead_is_worked_off():
    dead = [(None, member(chr(1000 + number))) for number in range(500)]
    directory = Directory(A)
    directory.take(read((MINE, A), *dead), NOW_NS)
    found = directory.take(read((MINE, A), *dead), NOW_NS + FORGET_NS)
    assert len(found.forgotten) == 500
    assert found.joined == ()


def test_another_version_and_another_configuration_are_told_and_served():
    other = member("b", version="1.1", configuration="d")
    found = Directory(A).take(read((MINE, A), (THEIRS, other), holder=THEIRS), NOW_NS)
    assert found.dispatcher == other
    assert found.warnings == (
        "member b runs version 1.1, and this one 1.0",
        "member b has other keyspaces or vschemas in its configuration than this one",
    )


def test_the_dead_are_not_compared():
    old = member("b", version="0.9")
    assert Directory(A).take(read((MINE, A), (None, old)), NOW_NS).warnings == ()


def test_who_is_present_holds_the_lock_of_a_member_and_is_not_the_reader():
    directory = Directory(A)
    assert directory.present() == []
    stranger = member("s", fleet="other")
    directory.take(read((MINE, A), (13, C), (THEIRS, B), (14, stranger)), NOW_NS)
    assert directory.present() == [B, C]
    directory.take(read((MINE, A), (13, C), (None, B)), NOW_NS)
    assert directory.present() == [C]
    assert directory.members["b"] == B, "it may come back"
