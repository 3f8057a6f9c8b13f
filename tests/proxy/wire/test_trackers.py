import pytest

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.codec import lenenc_bytes
from streamfrom.proxy.wire.constants import TrackerKind
from streamfrom.proxy.wire.resultset import Tracker, parse_trackers
from streamfrom.proxy.wire.trackers import (
    SHOWN_BY_DEFAULT,
    STATE_CHANGED,
    schema_state,
    shown_to,
)
from tests.proxy.wire.peers import encode_trackers


AUTOCOMMIT = Tracker(TrackerKind.SYSVAR, "autocommit", "OFF")
SQL_MODE = Tracker(TrackerKind.SYSVAR, "sql_mode", "ANSI")
SCHEMA = Tracker(TrackerKind.SCHEMA, "", "db_of_commerce")
STATE = Tracker(TrackerKind.STATE, "", "1")
GTIDS = Tracker(TrackerKind.GTIDS, "", "0-1-5")
TXSTATE = Tracker(TrackerKind.TXSTATE, "", "T_______")


def test_a_client_hears_of_what_a_server_reports_by_default_and_of_what_it_asks_for():
    state = encode_trackers([SQL_MODE, SCHEMA, STATE, AUTOCOMMIT])
    assert parse_trackers(shown_to(state, SHOWN_BY_DEFAULT)) == (AUTOCOMMIT,)
    assert shown_to(encode_trackers([SQL_MODE, STATE]), SHOWN_BY_DEFAULT) == b""
    state = encode_trackers([AUTOCOMMIT, STATE])
    assert shown_to(state, SHOWN_BY_DEFAULT, changes=True) == state
    assert parse_trackers(STATE_CHANGED) == (STATE,)
    state = encode_trackers([SQL_MODE, GTIDS, TXSTATE])
    assert parse_trackers(shown_to(state, None)) == (SQL_MODE, GTIDS, TXSTATE)
    known = Tracker(TrackerKind.SCHEMA, "", "commerce:-80")
    assert parse_trackers(schema_state("commerce:-80")) == (known,)


def test_several_variables_in_one_entry_are_looked_at_and_what_is_cut_is_refused():
    pairs = b"".join(map(lenenc_bytes, (b"sql_mode", b"ANSI", b"autocommit", b"OFF")))
    state = b"\0" + lenenc_bytes(pairs)
    assert parse_trackers(shown_to(state, SHOWN_BY_DEFAULT)) == (AUTOCOMMIT,)
    with pytest.raises(WireError):
        shown_to(encode_trackers([AUTOCOMMIT])[:-1], None)
