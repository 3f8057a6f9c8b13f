import ast

import pytest

from streamfrom.engine.messaging.table.table_settings import (
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


def comment(*more, **changes):
    settings = REQUIRED | changes
    pieces = [f"{key}={value}" for key, value in settings.items() if value is not None]
    return ",".join(["vitess_message", *pieces, *more])


@cases(more=str, name=str, value=ast.literal_eval)
def test_a_setting_is_read(more, name, value):
    assert getattr(parse_comment(comment() + more), name) == value


@cases(more=str, error=str)
def test_a_setting_that_cannot_be_used_is_an_error(more, error):
    with pytest.raises(CommentError) as failure:
        parse_comment(comment() + more)
    assert error in str(failure.value)


@cases(more=str, warning=str)
def test_settings_that_fight_each_other_are_reported(more, warning):
    assert warning in parse_comment(comment() + more).warnings


def test_blanks_around_keys_and_values_do_not_count():
    spaced = comment().replace(",", " ,\t").replace("=", " = ")
    assert parse_comment(spaced) == parse_comment(comment())


@pytest.mark.parametrize("key", REQUIRED)
@pytest.mark.parametrize("value", [None, "", "  ", "3=4"])
def test_a_required_key_must_be_there(key, value):
    with pytest.raises(CommentError) as failure:
        parse_comment(comment(**{key: value}))
    assert str(failure.value) == f"attribute {key} not specified for message table"


@pytest.mark.parametrize(
    "value", ["0", "-1", "x", "1s", "nan", "inf", "1_0", "0x10", "1e-30", "1e9999", "٣"]
)
@pytest.mark.parametrize(
    "key",
    ["ack_wait", "purge_after", "poller_interval", "min_backoff", "max_backoff", "lease_delay"],
)
def test_a_duration_that_cannot_be_used_is_named(key, value):
    with pytest.raises(CommentError) as failure:
        parse_comment(comment(f"vt_{key}={value}"))
    assert str(failure.value) == (
        f"vt_{key} must be a number of seconds greater than 0, not '{value}'"
    )


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", "1_0", "1e3"])
@pytest.mark.parametrize(
    "key", ["vt_batch_size", "vt_cache_size", "vt_max_in_flight", "vt_key=a,vt_max_per_key"]
)
def test_a_count_that_cannot_be_used_is_named(key, value):
    with pytest.raises(CommentError) as failure:
        parse_comment(comment(f"{key}={value}"))
    name = key.split(",")[-1]
    assert str(failure.value) == f"{name} must be a whole number greater than 0, not '{value}'"


@cases(text=str, is_one=ast.literal_eval)
def test_the_mark_is_a_plain_substring_and_sequences_go_before(text, is_one):
    assert is_message_table(text) is is_one


@cases(marked=str, is_nearly=ast.literal_eval)
def test_a_comment_that_is_nearly_the_mark_is_known(marked, is_nearly):
    assert is_nearly_marked(marked) is is_nearly


def test_all_faults_of_a_comment_are_reported_the_originals_first_one_first():
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


def test_a_limit_below_the_number_of_shards_says_why_not():
    properties = parse_comment(comment("vt_max_in_flight=3"))
    assert in_flight_fault(properties, 3) is None
    assert "must be at least 4, not '3'" in (in_flight_fault(properties, 4) or "")
    assert in_flight_fault(parse_comment(comment()), 4) is None
