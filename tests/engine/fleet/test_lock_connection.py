"""What an election says to a server; what real servers answer is in tests/integration/test_elections.py."""

import pytest

from streamfrom.engine.fleet.directory import CREATE, Member
from streamfrom.engine.fleet.election import LockHold
from streamfrom.engine.fleet.lock_connection import (
    Joined,
    LockLost,
    MemberExists,
    NotWritable,
    NumberTaken,
    acquire,
    dispatcher_lock,
    forget,
    join,
    keep,
    member_lock,
    number_lock,
    publish,
    read_directory,
    write_term,
)
from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer
from tests.engine.messaging.conversations import carry_out


OWN = Member("a" * 16, "", "10.0.0.1:1", "PEM", 5, "1.0", "c")
SET = [None, None, None]  # the answers to the session's settings
JOINS = [*SET, [b"1"], [b"1"], [b"0"]]  # and to two locks, and whether the server is read-only


def said(conversation, *answers):
    """Return what a conversation asks and what it returns; an answer is a row, None, or an error."""
    texts, left = [], list(answers)

    def answer_to(query):
        texts.append(query.sql)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return StoreAnswer([] if answer is None else [(tuple(answer), b"")])

    result = carry_out(conversation, answer_to)
    assert not left
    return texts, result


def refused(code):
    return ServerRefused(code, f"error {code}")


def test_locks_belong_to_the_database_and_fit_mysqls_64_characters():
    longest = member_lock("d" * 64, b"m" * 32)
    assert len(longest) <= 64
    assert len(dispatcher_lock("d" * 64, "s" * 32)) <= 64
    names = {dispatcher_lock(name, secret) for name in "ab" for secret in (None, "s", "t")}
    assert len(names) == 6
    assert longest.startswith(dispatcher_lock("d" * 64) + b".")


def test_a_member_limits_how_long_the_server_waits_for_it_before_it_takes_a_lock():
    (_, _, settings, lock, number, _, insert, secret), joined = said(
        join("ks", OWN, "new"), *JOINS, None, [b"there"]
    )
    for name in (b"wait_timeout", b"net_write_timeout", b"net_read_timeout"):
        assert b"SESSION %b = 3" % name in settings
    assert lock.startswith(b"SELECT GET_LOCK('%b', 0)" % member_lock("ks", OWN.id.encode()))
    assert number.startswith(b"SELECT GET_LOCK('%b', 0)" % number_lock("ks", OWN.id_prefix))
    assert insert.startswith(b"INSERT INTO streamfrom.members (database_name, member, fleet")
    assert secret == b"SELECT secret FROM streamfrom.locks WHERE database_name = 'ks'"
    assert joined == Joined("there", None)


@pytest.mark.parametrize("code", [1049, 1146])
def test_the_directory_is_made_when_it_is_missing(code):
    made = [refused(code), *[None] * len(CREATE), None]
    texts, joined = said(join("ks", OWN, "new"), *JOINS, *made, None, None, [b"new"])
    assert [text.decode() for text in texts[7 : 7 + len(CREATE)]] == list(CREATE)
    assert b"INSERT IGNORE INTO streamfrom.locks" in texts[-2]
    assert joined == Joined("new", None)


@pytest.mark.parametrize("code", [1044, 1142, 1143, 1227])
def test_an_account_without_rights_joins_without_a_row(code):
    _, joined = said(join("ks", OWN, "new"), *JOINS, refused(code), refused(code))
    assert joined == Joined(None, f"error {code}")
    cannot_make = [refused(1146), refused(code), refused(1146)]
    _, joined = said(join("ks", OWN, "new"), *JOINS, *cannot_make)
    assert joined == Joined(None, f"error {code}")
    _, joined = said(join("ks", OWN, "new"), *JOINS, None, None, refused(code))
    assert joined == Joined(None, f"error {code}"), "the row, and no secret"


def test_nothing_is_written_to_a_read_only_server_and_other_trouble_is_raised():
    said_so = Joined("s", "the server is read-only")
    assert said(join("ks", OWN, "new"), *SET, [b"1"], [b"1"], [b"1"], [b"s"])[1] == said_so
    # It turned read-only between the question and the row.
    assert said(join("ks", OWN, "new"), *JOINS, refused(1290), [b"s"])[1] == said_so
    with pytest.raises(ServerRefused):
        said(join("ks", OWN, "new"), *JOINS, refused(1114))
    with pytest.raises(MemberExists):
        said(join("ks", OWN, "new"), *SET, [b"0"])


def test_a_row_of_the_member_itself_gets_what_it_says_now():
    texts, denied = said(publish("ks", OWN), refused(1062), [OWN.id.encode()], None)
    assert denied is None
    assert texts[-1].startswith(b"UPDATE streamfrom.members SET member = ")
    assert said(publish("ks", OWN), refused(1062), None, None)[1] is None


def test_a_number_is_of_one_member():
    with pytest.raises(NumberTaken, match="its number 5 is that of member bbbb"):
        said(publish("ks", OWN), refused(1062), [b"bbbb"])
    # It takes part without a row: a stale one keeps nobody from dispatching.
    _, joined = said(join("ks", OWN, "new"), *JOINS, refused(1062), [b"bbbb"], [b"s"])
    assert joined == Joined("s", "its number 5 is that of member bbbb")


def test_the_plain_name_is_the_lock_and_with_a_secret_both_names_are():
    texts, hold = said(acquire("ks", None, 10), [b"1"])
    assert texts == [b"SELECT GET_LOCK('%b', 10)" % dispatcher_lock("ks")]
    assert hold is LockHold.PLAIN
    texts, hold = said(acquire("ks", "s", 10), [b"1"], [b"1"])
    names = dispatcher_lock("ks", "s"), dispatcher_lock("ks")
    assert texts == [
        b"SELECT GET_LOCK('%b', %d)" % each for each in zip(names, (10, 0), strict=True)
    ]
    assert hold is LockHold.BOTH
    for secret in (None, "s"):
        assert said(acquire("ks", secret, 10), [b"0"])[1] is None
    with pytest.raises(ServerRefused):
        said(acquire("ks", None, 10), [None])


def test_a_client_that_holds_the_plain_name_keeps_nobody_from_dispatching():
    assert said(acquire("ks", "s", 10), [b"1"], [b"0"], [b"99", b"0"])[1] is LockHold.SECRET
    # It has let it go meanwhile.
    free = [[b"0"], [None, b"0"], [b"1"]]
    assert said(acquire("ks", "s", 10), [b"1"], *free)[1] is LockHold.BOTH


def test_a_proxy_that_holds_the_plain_name_is_waited_for():
    ours = [[b"1"], [b"0"], [b"99", b"1"]]
    assert said(acquire("ks", "s", 0), *ours)[1] is None
    texts, hold = said(acquire("ks", "s", 10), *ours, [b"0"])
    assert hold is None
    assert texts[-1] == b"SELECT GET_LOCK('%b', 3)" % dispatcher_lock("ks")
    assert said(acquire("ks", "s", 10), *ours, [b"1"], [b"1"])[1] is LockHold.BOTH


def test_the_lock_is_kept_as_long_as_nobody_else_can_have_it():
    assert said(keep("ks", "s"), [b"s"], [b"1"])[1] is LockHold.BOTH
    assert said(keep("ks", "s"), [b"s"], [b"0"], [b"99", b"0"])[1] is LockHold.SECRET
    assert said(keep("ks", None), refused(1146))[1] is LockHold.PLAIN
    with pytest.raises(LockLost, match="does not know the directory"):
        said(keep("ks", "s"), [b"s"], [b"0"], [b"99", b"1"])
    for secret, now in [("s", [b"t"]), ("s", refused(1146)), (None, [b"s"])]:
        with pytest.raises(LockLost, match="another secret"):
            said(keep("ks", secret), now)


def test_a_term_is_the_next_one_or_0_where_none_may_be_written_and_none_where_nothing_can():
    texts, term = said(write_term("ks"), [b"0"], [b"41"], None)
    assert term == 42
    assert texts[-1] == b"UPDATE streamfrom.locks SET term = 42 WHERE database_name = 'ks'"
    for answers in ([refused(1142)], [[b"1"], refused(1142)], [None]):
        assert said(write_term("ks"), [b"0"], *answers)[1] == 0
    for error, answers in (
        (NotWritable, [[b"1"]]),
        (NotWritable, [[b"0"], [b"1"], refused(1290)]),
        (ServerRefused, [[b"0"], refused(1205)]),
    ):
        with pytest.raises(error):
            said(write_term("ks"), *answers)


def test_the_directory_is_rows_if_any_and_who_holds_which_lock():
    row = [b"11", b"11", b"12", b"s", b"11", *OWN.values]
    _, read = said(read_directory("ks", OWN, "s"), row)
    assert (read.holder, read.own, read.secret, read.outsider) == (11, 12, "s", None)
    assert read.entries == ((11, OWN),)
    empty = [b"11", None, None, b"s", None, *[None] * len(OWN.values)]
    _, read = said(read_directory("ks", OWN, "s"), empty, [b"11", b"1"])
    assert (read.holder, read.own, read.entries) == (11, None, ())
    # Who holds the plain name and is no member may be a client.
    _, read = said(read_directory("ks", OWN, "s"), [b"99", *row[1:]], [b"99", b"0"])
    assert (read.holder, read.outsider) == (11, 99)


@pytest.mark.parametrize("code", [1049, 1146, 1142])
def test_a_directory_that_cannot_be_read_leaves_the_locks(code):
    _, read = said(
        read_directory("ks", OWN, None), refused(code), [b"11", b"11", b"11", None, None]
    )
    assert (read.holder, read.own, read.secret, read.entries) == (11, 11, None, ())
    with pytest.raises(ServerRefused):
        said(read_directory("ks", OWN, None), refused(1205))


def test_ids_are_quoted_whatever_they_are():
    texts, _ = said(forget("k's", ("a", "b'; DROP")), None)
    assert texts == [
        b"DELETE FROM streamfrom.members WHERE database_name = 'k''s' AND member IN ('a', 'b''; DROP')"
    ]
