import pytest

from streamfrom.engine.fleet.directory import CREATE_TABLE, Member
from streamfrom.engine.fleet.lock_connection import (
    MemberExists,
    NotWritable,
    acquire,
    dispatcher_lock,
    forget,
    join,
    member_lock,
    read_directory,
    write_term,
)
from streamfrom.engine.messaging.conversation import ServerRefused, StoreAnswer


OWN = Member("a" * 16, "", "10.0.0.1:1", "PEM", 5, "1.0", "c")
SET = [None, None, None]  # the answers to the session's settings
ROW = [*OWN.values, b"7"]


def said(conversation, *answers):
    """Return what a conversation asks and what it returns; an answer is a row, None, or an error."""
    texts = []
    query = next(conversation)
    for answer in answers:
        texts.append(query.sql)
        try:
            if isinstance(answer, Exception):
                query = conversation.throw(answer)
            else:
                rows = [] if answer is None else [(tuple(answer), b"")]
                query = conversation.send(StoreAnswer(rows))
        except StopIteration as end:
            assert len(texts) == len(answers)
            return texts, end.value
    raise AssertionError(f"asks more: {query.sql}")


def refused(code):
    return ServerRefused(code, f"error {code}")


def test_locks_belong_to_the_database_and_fit_mysqls_64_characters():
    longest = member_lock("d" * 64, b"m" * 32)
    assert len(longest) <= 64
    assert dispatcher_lock("a") != dispatcher_lock("b")
    assert longest.startswith(dispatcher_lock("d" * 64) + b".")


def test_a_member_limits_how_long_the_server_waits_for_it_before_it_takes_a_lock():
    (_, _, settings, lock, _, insert), denied = said(
        join("ks", OWN), *SET, [b"1"], [b"0"], None
    )
    for name in (b"wait_timeout", b"net_write_timeout", b"net_read_timeout"):
        assert b"SESSION %b = 3" % name in settings
    assert lock.startswith(b"SELECT GET_LOCK('%b', 0)" % member_lock("ks", OWN.id.encode()))
    assert insert.startswith(b"INSERT INTO streamfrom_members (member, fleet")
    assert denied is None


def test_the_table_is_made_when_it_is_missing():
    texts, denied = said(join("ks", OWN), *SET, [b"1"], [b"0"], refused(1146), None, None)
    assert texts[-2] == CREATE_TABLE
    assert denied is None


@pytest.mark.parametrize("code", [1044, 1142, 1143, 1227])
def test_an_account_without_rights_joins_without_a_row(code):
    _, denied = said(join("ks", OWN), *SET, [b"1"], [b"0"], refused(code))
    assert denied == f"error {code}"
    _, denied = said(join("ks", OWN), *SET, [b"1"], [b"0"], refused(1146), refused(code))
    assert denied == f"error {code}"


def test_nothing_is_written_to_a_read_only_server():
    assert said(join("ks", OWN), *SET, [b"1"], [b"1"])[1] == "the server is read-only"
    # It turned read-only between the question and the row.
    last = said(join("ks", OWN), *SET, [b"1"], [b"0"], refused(1290))
    assert last[1] == "the server is read-only"


def test_trouble_that_no_right_explains_is_raised():
    with pytest.raises(ServerRefused):
        said(join("ks", OWN), *SET, [b"1"], [b"0"], refused(1114))


def test_a_member_that_is_there_already_is_told():
    with pytest.raises(MemberExists):
        said(join("ks", OWN), *SET, [b"0"])


def test_the_lock_is_granted_or_not_or_the_wait_is_interrupted():
    assert said(acquire("ks", 10), [b"1"])[1] is True
    assert said(acquire("ks", 10), [b"0"])[1] is False
    with pytest.raises(ServerRefused):
        said(acquire("ks", 10), [None])


def test_a_term_is_the_next_one_and_the_row_is_there_for_it():
    texts, term = said(write_term(OWN), [b"0"], refused(1062), [b"41"], None)
    assert term == 42
    assert texts[-1] == b"UPDATE streamfrom_members SET term = 42 WHERE member = '%b'" % (
        OWN.id.encode()
    )
    assert said(write_term(OWN), [b"0"], None, [None], None)[1] == 1


def test_no_term_is_written_where_nothing_can_be():
    with pytest.raises(NotWritable):
        said(write_term(OWN), [b"1"])
    with pytest.raises(NotWritable):
        said(write_term(OWN), [b"0"], refused(1062), [b"1"], refused(1290))


def test_without_rights_the_term_is_0():
    assert said(write_term(OWN), [b"0"], refused(1142))[1] == 0
    assert said(write_term(OWN), [b"0"], refused(1062), [b"1"], refused(1142))[1] == 0


def test_a_locked_table_is_no_lack_of_rights():
    with pytest.raises(ServerRefused):
        said(write_term(OWN), [b"0"], refused(1205))


def test_the_directory_is_rows_and_who_holds_which_lock():
    _, read = said(read_directory("ks", OWN), [b"11", b"12", b"11", *ROW])
    assert (read.holder, read.own) == (11, 12)
    assert read.entries == ((11, (OWN, 7)),)
    assert not read.is_unreadable


def test_a_table_without_rows_still_tells_who_holds_the_lock():
    _, read = said(read_directory("ks", OWN), [b"11", None, None, *[None] * len(ROW)])
    assert (read.holder, read.own, read.entries) == (11, None, ())


@pytest.mark.parametrize("code", [1146, 1142])
def test_a_table_that_cannot_be_read_leaves_the_locks(code):
    _, read = said(read_directory("ks", OWN), refused(code), [b"11", b"11"])
    assert (read.holder, read.own, read.is_unreadable) == (11, 11, True)
    with pytest.raises(ServerRefused):
        said(read_directory("ks", OWN), refused(1205))


def test_ids_are_quoted_whatever_they_are():
    texts, _ = said(forget(("a", "b'; DROP")), None)
    assert texts == [b"DELETE FROM streamfrom_members WHERE member IN ('a', 'b''; DROP')"]
