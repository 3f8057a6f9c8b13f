import ast
import re

import pytest

from streamfrom.engine.messaging.table.table_settings import (
    COUNT_MAX,
    WAIT_MAX_NS,
    CommentError,
    in_flight_fault,
    is_message_table,
    is_nearly_marked,
    parse_comment,
    unread_keys,
)
from tests.cases import cases


REQUIRED = {
    "vt_ack_wait": "30",
    "vt_purge_after": "120",
    "vt_batch_size": "1",
    "vt_cache_size": "10",
    "vt_poller_interval": "30",
}
SECOND_NS = 10**9


def comment(*more, **changes):
    settings = REQUIRED | changes
    pieces = [f"{key}={value}" for key, value in settings.items() if value is not None]
    return ",".join(["vitess_message", *pieces, *more])


def test_the_required_keys_are_enough():
    table = parse_comment(comment())
    assert table.ack_wait_ns == 30 * SECOND_NS
    assert table.purge_after_ns == 120 * SECOND_NS
    assert (table.batch_size, table.cache_size) == (1, 10)
    assert table.poller_interval_ns == 30 * SECOND_NS
    assert (table.min_backoff_ns, table.max_backoff_ns) == (30 * SECOND_NS, 0)
    assert (table.message_cols, table.newest, table.warnings) == (None, False, ())


def test_the_bounds_of_the_backoff_are_read():
    table = parse_comment(comment("vt_min_backoff=10", "vt_max_backoff=100"))
    assert (table.min_backoff_ns, table.max_backoff_ns) == (10 * SECOND_NS, 100 * SECOND_NS)


def test_durations_may_be_fractions():
    assert parse_comment(comment(vt_ack_wait="0.5")).ack_wait_ns == SECOND_NS // 2
    assert parse_comment(comment(vt_ack_wait=".5")).ack_wait_ns == SECOND_NS // 2
    assert parse_comment(comment(vt_ack_wait="1e-3")).ack_wait_ns == 10**6


def test_blanks_around_keys_and_values_do_not_count():
    spaced = comment().replace(",", " ,\t").replace("=", " = ")
    assert parse_comment(spaced) == parse_comment(comment())


def test_the_last_of_two_wins():
    assert parse_comment(comment("vt_batch_size=7")).batch_size == 7


def test_a_piece_with_two_signs_is_no_setting():
    with pytest.raises(CommentError, match="vt_ack_wait not specified"):
        parse_comment(comment(vt_ack_wait="3=4"))


@pytest.mark.parametrize("key", REQUIRED)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_required_key_must_be_there(key, value):
    with pytest.raises(CommentError) as failure:
        parse_comment(comment(**{key: value}))
    assert str(failure.value) == f"attribute {key} not specified for message table"


def test_the_first_missing_key_is_named_in_the_original_order():
    with pytest.raises(CommentError, match="vt_purge_after not specified"):
        parse_comment("vitess_message,vt_ack_wait=30")


@pytest.mark.parametrize(
    "value", ["0", "-1", "x", "1s", "nan", "inf", "1_0", "0x10", "1e-30", "1e9999", "٣"]
)
@pytest.mark.parametrize(
    "key",
    [
        "vt_ack_wait",
        "vt_purge_after",
        "vt_poller_interval",
        "vt_min_backoff",
        "vt_max_backoff",
    ],
)
def test_a_duration_that_cannot_be_used_is_named(key, value):
    with pytest.raises(CommentError) as failure:
        parse_comment(comment(**{key: value}))
    assert str(failure.value) == (
        f"{key} must be a number of seconds greater than 0, not '{value}'"
    )


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", "1_0", "1e3"])
@pytest.mark.parametrize("key", ["vt_batch_size", "vt_cache_size"])
def test_a_count_that_cannot_be_used_is_named(key, value):
    with pytest.raises(CommentError) as failure:
        parse_comment(comment(**{key: value}))
    assert str(failure.value) == f"{key} must be a whole number greater than 0, not '{value}'"


def test_values_beyond_reason_are_bounded():
    table = parse_comment(comment(vt_ack_wait="1e300", vt_cache_size="9" * 40))
    assert (table.ack_wait_ns, table.cache_size) == (WAIT_MAX_NS, COUNT_MAX)


def test_the_columns_are_read_in_their_order():
    assert parse_comment(comment("vt_message_cols= id | b|a ")).message_cols == ("id", "b", "a")


@pytest.mark.parametrize("piece", ["vt_message_cols", "vt_message_cols="])
def test_columns_without_a_value_are_as_if_absent(piece):
    assert parse_comment(comment(piece)).message_cols is None


def test_the_order_is_oldest_or_newest():
    assert parse_comment(comment("vt_order=newest")).newest
    assert not parse_comment(comment("vt_order=oldest")).newest
    with pytest.raises(
        CommentError, match="vt_order must be 'oldest', 'newest' or 'strict', not 'up'"
    ):
        parse_comment(comment("vt_order=up"))


def test_unknown_vt_keys_are_reported_and_others_are_not():
    table = parse_comment(comment("vt_cache_seze=1", "owner=me", "vt_topic"))
    assert table.warnings == (
        "unknown key 'vt_cache_seze' in the comment is ignored; did you mean vt_cache_size?",
        "'vt_topic' in the comment has no single value and is ignored",
    )


@cases(text=str, is_one=ast.literal_eval)
def test_the_mark_is_a_plain_substring_and_sequences_go_before(text, is_one):
    assert is_message_table(text) is is_one


@cases(marked=str, is_nearly=ast.literal_eval)
def test_a_comment_that_is_nearly_the_mark_is_known(marked, is_nearly):
    assert is_nearly_marked(marked) is is_nearly


def test_all_faults_of_a_comment_are_told_the_originals_first_one_first():
    with pytest.raises(CommentError) as caught:
        parse_comment(
            "vitess_message,vt_ack_wiat=30,vt_purge_after=x,vt_batch_size=1,vt_order=by"
        )
    assert str(caught.value) == "attribute vt_ack_wait not specified for message table"
    assert caught.value.others == (
        "vt_purge_after must be a number of seconds greater than 0, not 'x'",
        "attribute vt_cache_size not specified for message table",
        "attribute vt_poller_interval not specified for message table",
        "vt_order must be 'oldest', 'newest' or 'strict', not 'by'",
    )
    assert unread_keys("vitess_message,vt_ack_wiat=30") == (
        "unknown key 'vt_ack_wiat' in the comment is ignored; did you mean vt_ack_wait?",
    )


def test_settings_that_fight_each_other_are_told():
    table = parse_comment(comment("vt_min_backoff=100", "vt_max_backoff=10"))
    assert table.warnings == (
        "vt_min_backoff 100 is more than vt_max_backoff 10: every wait is about the maximum",
    )
    (line,) = parse_comment(comment("vt_max_backoff=10")).warnings
    assert line.startswith("vt_ack_wait 30 is more than vt_max_backoff 10: ")
    (line,) = parse_comment(comment("vt_batch_size=20000")).warnings
    assert line == (
        "vt_cache_size 10 is less than vt_batch_size 20000: no batch is larger than 10"
    )
    assert parse_comment(comment("vt_min_backoff=10", "vt_max_backoff=10")).warnings == ()


@cases(more=str, prefetch=ast.literal_eval)
def test_the_prefetch_follows_the_acks_unless_the_comment_has_a_number(more, prefetch):
    assert parse_comment(comment() + more).prefetch == prefetch


@cases(more=str, release_after_ns=ast.literal_eval)
def test_what_a_client_held_is_released_five_seconds_after_it_left(more, release_after_ns):
    assert parse_comment(comment() + more).release_after_ns == release_after_ns


@pytest.mark.parametrize("value", ["-1", "0", "ten", "NEVER", "1s"])
def test_a_release_that_is_no_duration_is_an_error(value):
    sentence = "vt_release_after must be a number of seconds greater than 0 or 'never'"
    with pytest.raises(CommentError, match=sentence):
        parse_comment(comment(f"vt_release_after={value}"))


@pytest.mark.parametrize("value", ["-1", "ten", "1.5", "automatic", "9" * 5000])
def test_a_prefetch_that_is_no_limit_is_an_error(value):
    with pytest.raises(
        CommentError, match="vt_prefetch must be 'auto' or a whole number, 0 for no limit"
    ):
        parse_comment(comment(f"vt_prefetch={value}"))


@cases(more=str, is_paused=ast.literal_eval)
def test_a_queue_is_paused_by_a_switch(more, is_paused):
    properties = parse_comment(comment() + more)
    assert properties.paused is is_paused
    assert ("vt_paused is on: no message is sent" in properties.warnings) is is_paused


@pytest.mark.parametrize("value", ["yes", "2", "-1", "paused"])
def test_what_is_neither_on_nor_off_is_an_error(value):
    with pytest.raises(CommentError, match=f"vt_paused must be 'on' or 'off', not '{value}'"):
        parse_comment(comment(f"vt_paused={value}"))


def test_a_limit_of_messages_in_flight_has_leases_written_unless_told_otherwise():
    assert parse_comment(comment()).max_in_flight is None
    limited = parse_comment(comment("vt_max_in_flight=8"))
    assert (limited.max_in_flight, limited.lease_delay_ns) == (8, 0)
    lazy = parse_comment(comment("vt_max_in_flight=8,vt_lease=lazy"))
    assert lazy.lease_delay_ns > 0
    for value in ("0", "-1", "1.5", "all"):
        with pytest.raises(
            CommentError, match="vt_max_in_flight must be a whole number greater"
        ):
            parse_comment(comment(f"vt_max_in_flight={value}"))


@pytest.mark.parametrize(
    ("text", "rate"),
    [("500", 500 * 10**6), ("0.5", 500_000), ("0.000001", 1), ("1e99", (2**31 - 1) * 10**6)],
)
def test_a_rate_may_have_a_fraction(text, rate):
    assert parse_comment(comment(f"vt_max_rate={text}")).max_rate == rate
    assert parse_comment(comment()).max_rate is None


@pytest.mark.parametrize("text", ["0", "-1", "fast", "0.0000001", "nan", "inf", "1/s"])
def test_a_rate_that_is_none_is_an_error(text):
    with pytest.raises(CommentError, match="vt_max_rate must be a number of messages a second"):
        parse_comment(comment(f"vt_max_rate={text}"))


def test_acks_are_committed_before_they_are_answered_unless_the_table_says_otherwise():
    assert not parse_comment(comment()).acks_early
    assert not parse_comment(comment("vt_ack=committed")).acks_early
    assert parse_comment(comment("vt_ack=early,vt_key=tenant")).acks_early
    with pytest.raises(CommentError, match="vt_ack must be 'committed' or 'early', not 'on'"):
        parse_comment(comment("vt_ack=on"))
    for order in ("vt_order=strict", "vt_key=tenant,vt_max_per_key=1"):
        with pytest.raises(
            CommentError, match="vt_ack must be 'committed' with vt_order = str"
        ):
            parse_comment(comment(f"vt_ack=early,{order}"))


def test_delayed_messages_are_taken_unless_switched_off():
    assert parse_comment(comment()).delayed
    assert parse_comment(comment("vt_delayed=on")).delayed
    assert not parse_comment(comment("vt_delayed=off")).delayed
    with pytest.raises(CommentError, match="vt_delayed must be 'on' or 'off', not 'never'"):
        parse_comment(comment("vt_delayed=never"))


@pytest.mark.parametrize("value", ["-1", "1.5", "ten", "9" * 200])
def test_a_number_of_attempts_that_is_none_is_an_error(value):
    with pytest.raises(CommentError, match="vt_max_attempts must be a whole number, 0 for no"):
        parse_comment(comment(f"vt_max_attempts={value}"))


def test_dead_letters_go_to_a_table_of_the_same_keyspace():
    found = parse_comment(comment("vt_max_attempts=3,vt_dead_letter=grave"))
    assert (found.dead_letter, found.warnings) == ("grave", ())
    assert parse_comment(comment()).dead_letter is None
    with pytest.raises(
        CommentError, match="vt_dead_letter must be a table of the same keyspace"
    ):
        parse_comment(comment("vt_max_attempts=3,vt_dead_letter=other.grave"))


def test_dead_letters_without_an_end_of_attempts_are_a_warning():
    (warning,) = parse_comment(comment("vt_dead_letter=grave")).warnings
    assert warning == "vt_dead_letter without vt_max_attempts: no message ever goes there"


@pytest.mark.parametrize("value", ["hash(user_id)", "hash (`user_id`)", " hash( user_id ) "])
def test_a_queue_may_say_how_it_is_sharded(value):
    assert parse_comment(comment(f"vt_shard_by={value}")).shard_by == ("hash", "user_id")
    assert parse_comment(comment()).shard_by is None


@pytest.mark.parametrize("value", ["hash", "hash()", "(id)", "hash(a)(b)", "hash(id", "a b(c)"])
def test_a_sharding_that_is_no_vindex_of_a_column_is_an_error(value):
    with pytest.raises(CommentError, match="vt_shard_by must be a vindex and its column"):
        parse_comment(comment(f"vt_shard_by={value}"))


@cases(more=str, lease_delay_ns=ast.literal_eval)
def test_a_lease_is_written_a_second_after_the_first_delivery(more, lease_delay_ns):
    assert parse_comment(comment() + more).lease_delay_ns == lease_delay_ns


def test_a_delay_of_leases_that_are_written_at_once_is_told():
    (warning,) = parse_comment(comment("vt_lease=written,vt_lease_delay=1")).warnings
    assert warning == "vt_lease_delay without vt_lease = lazy: every lease is written at once"


@cases(more=str, sentence=str)
def test_what_a_lease_cannot_be_is_an_error(more, sentence):
    with pytest.raises(CommentError, match=f"^{re.escape(sentence)}$"):
        parse_comment(comment(more))


def test_groups_are_two_columns():
    assert parse_comment(comment()).groups is None
    found = parse_comment(comment(vt_group="batch", vt_after=" comes_after "))
    assert found.groups == ("batch", "comes_after")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"vt_group": "a"}, "vt_group needs vt_after: groups are two columns"),
        ({"vt_after": "a"}, "vt_after needs vt_group: groups are two columns"),
        (
            {"vt_group": "a", "vt_after": "A"},
            "vt_group and vt_after must be two columns, not both 'a'",
        ),
    ],
)
def test_half_of_a_group_is_a_fault(settings, fault):
    with pytest.raises(CommentError) as caught:
        parse_comment(comment(**settings))
    assert str(caught.value) == fault


def test_messages_may_wait_for_others_of_their_key():
    plain = parse_comment(comment("vt_key=tenant"))
    assert (plain.key, plain.in_order, plain.lease_delay_ns) == ("tenant", None, SECOND_NS)
    keyed = parse_comment(comment("vt_key=tenant", "vt_max_per_key=3"))
    assert (keyed.key, keyed.in_order, keyed.lease_delay_ns) == ("tenant", 3, 0)
    assert parse_comment(comment("vt_key=tenant", "vt_fair=on")).fair
    both = parse_comment(comment("vt_key=tenant", "vt_fair=on", "vt_max_per_key=3"))
    assert (both.fair, both.in_order) == (True, 3)
    assert not parse_comment(comment("vt_fair=off")).fair
    strict = parse_comment(comment("vt_order=strict"))
    assert (strict.key, strict.in_order, strict.lease_delay_ns) == (None, 1, 0)
    assert not strict.newest


@cases(settings=str, words=str)
def test_what_cannot_be_ordered(settings, words):
    with pytest.raises(CommentError, match=re.escape(words)):
        parse_comment(comment(settings))


IN_FLIGHT_COMMENT = (
    "vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,"
    "vt_cache_size=10000,vt_poller_interval=30"
)


def test_a_limit_below_the_number_of_shards_says_why_not():
    properties = parse_comment(f"{IN_FLIGHT_COMMENT},vt_max_in_flight=3")
    assert in_flight_fault(properties, 3) is None
    assert "must be at least 4, not '3'" in (in_flight_fault(properties, 4) or "")
    assert in_flight_fault(parse_comment(IN_FLIGHT_COMMENT), 4) is None
