import ast

from streamfrom.proxy.backends.session_variables import Settings, names
from streamfrom.proxy.execution.session_state import (
    SessionState,
    footprint_of,
    leaves_residue,
    must_stay,
)
from streamfrom.proxy.wire.constants import PROXY_OFFER, Capability, TrackerKind
from streamfrom.proxy.wire.resultset import Ok, Tracker
from tests.cases import cases
from tests.sqlparse_ext.facts import shape


TRACKERS = {
    "STATE": Tracker(TrackerKind.STATE, "", "1"),
    "SCHEMA": Tracker(TrackerKind.SCHEMA, "", "shop"),
}


def trackers(text):
    """Return what a server tells: `STATE`, `SCHEMA`, `variable=value`."""
    return tuple(
        TRACKERS.get(word) or Tracker(TrackerKind.SYSVAR, *word.split("="))
        for word in text.split()
    )


def answered(text):
    """Return an OK packet with so many affected rows, an insert id and so many warnings."""
    affected_rows, last_insert_id, warnings = ast.literal_eval(text)
    return Ok(affected_rows, last_insert_id, 2, warnings, b"")


@cases(sql=str)
def test_what_only_this_connection_has_keeps_the_session_on_it(sql):
    assert must_stay(shape(sql), ())


@cases(sql=str)
def test_what_leaves_no_state_may_go_on_anywhere(sql):
    assert not must_stay(shape(sql), ())


@cases(sql=str, trackers=trackers, expected=ast.literal_eval)
def test_a_change_that_no_variable_explains_keeps_the_session_on_its_connection(
    sql, trackers, expected
):
    assert must_stay(shape(sql), trackers) is expected


@cases(sql=str, answer=answered, expected=ast.literal_eval)
def test_residue_is_what_another_session_could_notice(sql, answer, expected):
    assert leaves_residue(shape(sql), answer) is expected


def state(capabilities=PROXY_OFFER, settings=None):
    return SessionState(int(capabilities), settings or names("utf8mb4", "utf8mb4_general_ci"))


def test_flags_of_a_login_ask_for_connections_of_their_own_and_ignore_space_joins_the_mode():
    plain = int(PROXY_OFFER & ~(Capability.FOUND_ROWS | Capability.IGNORE_SPACE))
    assert state(plain).variant == 0
    assert state(plain | Capability.FOUND_ROWS).variant == Capability.FOUND_ROWS
    assert state(plain & ~Capability.DEPRECATE_EOF).variant == 0
    extends = Capability.EXTENDED_METADATA
    assert state(plain | extends).variant == extends
    begins = Settings([("sql_mode", "ANSI_QUOTES")])
    ignores = SessionState(int(Capability.IGNORE_SPACE), begins)
    assert ignores.settings.sql_mode == "ANSI_QUOTES,IGNORE_SPACE"
    assert SessionState(0, begins).settings is begins
    assert SessionState(int(Capability.IGNORE_SPACE), Settings()).settings is Settings()


@cases(sql=str, untracked=ast.literal_eval, collation=ast.literal_eval)
def test_what_a_tracker_does_not_tell_is_read_from_the_statement(sql, untracked, collation):
    assert footprint_of(shape(sql)).sets_untracked is untracked
    assert footprint_of(shape(sql)).sets_collation is collation
