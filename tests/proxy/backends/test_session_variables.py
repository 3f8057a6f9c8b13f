import ast
import gc
import re

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.backends.session_variables import TRACKED, Settings, names
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases


values = st.dictionaries(
    st.sampled_from(sorted(TRACKED)), st.sampled_from(["ON", "1", "a'b", "x\\", ""]), max_size=5
)


@given(values, st.randoms())
def test_equal_contents_are_one_object_in_whatever_order_they_came(contents, dice):
    items = list(contents.items())
    dice.shuffle(items)
    assert Settings(items) is Settings(contents.items())


def test_ever_new_values_do_not_fill_the_memory_and_what_was_forgotten_still_compares():
    settings = before = Settings([("time_zone", "UTC")])
    for number in range(10_000):
        settings = Settings([("sql_select_limit", str(number))])
    assert settings.values == {"sql_select_limit": "9999"}
    assert sum(type(each) is Settings for each in gc.get_objects()) < 8_000
    again = Settings([("time_zone", "UTC")])
    assert again is not before
    assert again.statement_from(before) is None
    assert again.fits(before)


@cases(known=ast.literal_eval, wanted=ast.literal_eval, statement=str.encode)
def test_one_set_turns_a_connection_into_what_is_wanted(known, wanted, statement):
    assert Settings(wanted.items()).statement_from(Settings(known.items())) == statement


def test_character_set_and_collation_are_set_as_a_login_sets_them():
    wanted = names("utf8mb4", "utf8mb4_bin").with_changes([("time_zone", "UTC")])
    text = b"SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin'"
    assert wanted.statement_from(Settings()) == text + b", @@session.time_zone = 'UTC'"
    assert wanted.statement_from(names("utf8mb4", "utf8mb4_bin")) == (
        b"SET @@session.time_zone = 'UTC'"
    )
    known = names("utf8mb4", "utf8mb4_general_ci").with_changes([("time_zone", "UTC")])
    assert wanted.statement_from(known) == text
    assert names("binary", "binary").statement_from(Settings()) == (
        b"SET NAMES 'binary' COLLATE 'binary'"
    )


@pytest.mark.parametrize(
    "change", [("character_set_results", "latin1"), ("collation_connection", "latin1_bin")]
)
def test_the_collation_is_set_behind_the_character_sets_that_would_reset_it(change):
    wanted = names("utf8mb4", "utf8mb4_bin").with_changes([change])
    statement = wanted.statement_from(Settings())
    assert statement is not None
    assigned = re.findall(rb"session\.(\w+)", statement)
    assert assigned[-1] == b"collation_connection"
    assert set(assigned[:-1]) == {
        b"character_set_client",
        b"character_set_connection",
        b"character_set_results",
    }


@given(values, values)
def test_a_connection_fits_unless_it_has_a_variable_the_session_lacks(known, wanted):
    assert Settings(wanted.items()).fits(Settings(known.items())) == (
        known.keys() <= wanted.keys()
    )


@given(values, values)
def test_no_value_leaves_its_quotes(known, wanted):
    statement = Settings(wanted.items()).statement_from(Settings(known.items()))
    if statement is not None:
        text = re.sub(rb"'(?:[^'\\]|''|\\\\)*'", b"?", statement)
        part = rb"(NAMES \? COLLATE \?|@@session\.\w+ = (\?|\d+|NULL))"
        assert re.fullmatch(rb"SET %s(, %s)*" % (part, part), text)


@cases(charset=str, unread=ast.literal_eval, is_utf8=ast.literal_eval)
def test_a_character_set_says_how_statements_may_be_read(charset, unread, is_utf8):
    settings = names(charset, f"{charset}_bin")
    assert (settings.unread, settings.is_utf8) == (unread, is_utf8)
    assert (Settings().unread, Settings().is_utf8) == (None, True)


def test_texts_are_written_as_a_server_writes_them_in_the_character_set_of_results():
    def encode(charset: str, text: str) -> bytes:
        encoder = names(charset, f"{charset}_x").results_encoder()
        assert encoder is not None
        return encoder(text)

    assert (
        Settings().results_encoder()
        is names("utf8mb3", "utf8mb3_bin").results_encoder()
        is None
    )
    assert encode("latin1", "é€\x8dя") == b"\xe9\x80\x8d?"
    assert encode("gbk", "é€") == b"\xa8\xa6?"
    with pytest.raises(Unsupported, match="character_set_results is dec8; SET NAMES utf8mb4"):
        encode("dec8", "é")
