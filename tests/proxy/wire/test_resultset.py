import contextlib

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import UnknownDatabase, WireError
from streamfrom.proxy.wire.codec import lenenc_bytes
from streamfrom.proxy.wire.constants import Capability, FieldType, Status, TrackerKind
from streamfrom.proxy.wire.framing import frame, frames
from streamfrom.proxy.wire.resultset import (
    SHOWN_BY_DEFAULT,
    STATE_CHANGED,
    ColumnDefinition,
    Err,
    Ok,
    Tracker,
    column_count,
    column_definition,
    eof_packet,
    err_packet,
    error_packet,
    message_bytes,
    ok_packet,
    parse_column_definition as read_column_definition,
    parse_err,
    parse_ok,
    parse_text_row,
    parse_trackers,
    resultset_head,
    row_info,
    schema_state,
    shown_to,
    skip_lenenc,
    text_row,
    with_insert_id,
    with_row_info,
    with_type_of,
)
from tests.proxy.wire.peers import encode_trackers, parse_column_definition
from tests.proxy.wire.streams import MODERN, MODERN_WITHOUT_TRACK, OLD, dones, result_sets


STATE = encode_trackers([Tracker(0, "autocommit", "OFF"), Tracker(1, "", "shop")])


@given(done=dones, is_eof=st.booleans())
def test_an_ok_comes_back(done, is_eof):
    ok = parse_ok(done.packet(is_eof=is_eof))
    assert (ok.affected_rows, ok.last_insert_id) == (done.affected_rows, done.last_insert_id)
    assert ok.status & ~Status.SESSION_STATE_CHANGED == done.status
    assert (ok.warnings, ok.info, ok.trackers) == (done.warnings, done.info, done.trackers)


# As MariaDB 10.11 and MySQL 9.7 send them, byte for byte; the second flag is SESSION_TRACK.
SERVER_OKS = [
    (b"\x00\x01\x00\x02\x00\x00\x00", False, Ok(1, 0, 2, 0, b"")),
    (b"\x00\x02\x00\x22\x00\x00\x00(Rows matched: 2  Changed: 2  Warnings: 0", False, Ok(2, 0, 0x22, 0, b"Rows matched: 2  Changed: 2  Warnings: 0")),
    (b"\x00\x02\x00\x22\x00\x00\x00(Rows matched: 2  Changed: 2  Warnings: 0", True, Ok(2, 0, 0x22, 0, b"Rows matched: 2  Changed: 2  Warnings: 0")),
    (b"\x00\x00\x00\x02\x40\x00\x00\x00\x04\x01\x02\x01p", True, Ok(0, 0, 0x4002, 0, b"", b"\x01\x02\x01p")),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "track", "ok"), SERVER_OKS)
def test_an_ok_is_written_as_servers_write_it(payload, track, ok):
    assert parse_ok(payload) == ok
    capabilities = MODERN if track else MODERN_WITHOUT_TRACK
    assert (
        ok_packet(
            ok.affected_rows,
            ok.last_insert_id,
            status=ok.status,
            warnings=ok.warnings,
            info=ok.info,
            capabilities=capabilities,
            session_state=ok.session_state,
        )
        == payload
    )


def test_trackers_of_both_servers_are_read_and_told_only_to_those_who_asked():
    mysql = b"\x00\x0f\nautocommit\x03OFF\x00\n\x08sql_mode\x00"
    expected = (Tracker(0, "autocommit", "OFF"), Tracker(0, "sql_mode", ""))
    assert parse_trackers(mysql) == expected
    # SET autocommit=0 with every tracker on: STATE alone has no inner length.
    assert parse_trackers(b"\x00\x0f\nautocommit\x03OFF\x02\x011\x05\x09\x08________") == (
        Tracker(0, "autocommit", "OFF"),
        Tracker(2, "", "1"),
        Tracker(5, "", "________"),
    )
    assert parse_trackers(b"\x02\x02\x011") == (Tracker(2, "", "1"),), "the manual's form"
    both_in_one = b"\x00\x19\nautocommit\x03OFF\x08sql_mode\x00"
    assert parse_trackers(both_in_one) == expected
    shown = ok_packet(status=2, capabilities=MODERN, session_state=STATE)
    assert parse_ok(shown).session_state == STATE
    hidden = ok_packet(
        status=2 | Status.SESSION_STATE_CHANGED,
        capabilities=MODERN_WITHOUT_TRACK,
        session_state=STATE,
    )
    assert hidden == b"\x00\x00\x00\x02\x00\x00\x00"


@given(
    trackers=st.lists(
        st.builds(Tracker, st.just(0), st.text(max_size=9), st.text(max_size=300))
        | st.builds(
            Tracker, st.sampled_from([1, 3, 4, 5, 42]), st.just(""), st.text(max_size=300)
        )
        | st.just(Tracker(2, "", "1"))
    )
)
def test_trackers_come_back(trackers):
    assert parse_trackers(encode_trackers(trackers)) == tuple(trackers)


def test_an_error_comes_back_and_is_raised_with_the_servers_own_code_and_words():
    packet = err_packet(1049, "42000", "Unknown database 'x'", MODERN)
    assert parse_err(packet) == Err(1049, "42000", b"Unknown database 'x'")
    assert error_packet(UnknownDatabase("x"), MODERN) == packet
    packet = err_packet(1040, "08004", "Too many connections", 0)
    assert packet == b"\xff\x10\x04Too many connections"
    assert parse_err(packet) == Err(1040, "HY000", b"Too many connections")
    error = Err(1062, "23000", b"Duplicate entry '\xff'").exception()
    assert error.wire_code() == (1062, "23000")
    assert str(error) == "Duplicate entry '\udcff'"
    # In the words of a client that speaks latin1, which it reads as it wrote them.
    assert error_packet(error, MODERN).endswith(b"Duplicate entry '\xff'")
    assert message_bytes("\ud800") == b"?"


columns = st.builds(
    ColumnDefinition,
    *[st.text(max_size=12)] * 5,
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFFFFFFFF),
    st.sampled_from([int(kind) for kind in FieldType]),
    st.integers(0, 0xFFFF),
    st.integers(0, 255),
)


@given(column=columns)
def test_a_column_comes_back(column):
    assert parse_column_definition(column_definition(column)) == column


@given(column=columns, other=columns, said=st.binary(max_size=12))
def test_extended_metadata_stands_before_the_type_and_is_part_of_it(column, other, said):
    extends = Capability.EXTENDED_METADATA
    plain, extended = column_definition(other), column_definition(other, extends)
    assert extended == plain[:-13] + b"\0" + plain[-13:]
    json = plain[:-13] + lenenc_bytes(said) + plain[-13:]
    assert read_column_definition(json) == other
    typed = with_type_of(column_definition(column, extends), json)
    assert typed.endswith(json[-13 - 1 - len(said) :])
    assert read_column_definition(typed).name == column.name


def test_a_column_is_written_as_servers_write_it():
    column = ColumnDefinition("id", "t", "p", "t", "id", 63, 11, FieldType.LONG, 0x8001)
    assert column_definition(column) == (
        b"\x03def\x01p\x01t\x01t\x02id\x02id\x0c\x3f\x00\x0b\x00\x00\x00\x03\x01\x80\x00\x00\x00"
    )


values = st.lists(
    st.one_of(st.none(), st.binary(max_size=300), st.just(b"x" * 70_000)), max_size=5
)


@given(row=values)
def test_a_row_comes_back(row):
    payload = text_row(row)
    assert parse_text_row(payload) == row
    assert parse_text_row(payload, len(row)) == row
    assert skip_lenenc(payload, 0, len(row)) == len(payload)
    with pytest.raises(WireError):
        parse_text_row(payload, len(row) + 1)
    with pytest.raises(WireError):
        skip_lenenc(payload, 0, len(row) + 1)


@given(part=result_sets())
def test_a_result_set_begins_as_the_client_reads_it(part):
    for capabilities in (MODERN, OLD):
        eof = [] if capabilities & Capability.DEPRECATE_EOF else [eof_packet(2)]
        head = [column_count(len(part.definitions)), *part.definitions, *eof]
        assert resultset_head(
            part.definitions, capabilities=capabilities, status=2, sequence=5
        ) == frames(head, 5)


@given(payload=st.binary(max_size=60))
def test_noise_raises_nothing_but_wire_errors(payload):
    for read in (
        lambda data: parse_ok(data).trackers,
        lambda data: parse_ok(b"\0\0\0\0\x40\0\0" + data).trackers,
        parse_err,
        parse_text_row,
        parse_trackers,
        lambda data: skip_lenenc(data, 0, 3),
    ):
        with contextlib.suppress(WireError):
            read(payload)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(1, 2**64 - 1))
def test_another_insert_id_leaves_the_rest_of_an_ok_as_it_is(affected, before, after):
    def told(insert_id):
        return frame(
            ok_packet(affected, insert_id, status=2, info=b"x", capabilities=MODERN), 7
        )

    assert with_insert_id(told(before), after) == told(after)


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**16 - 1),
    st.sampled_from([b"", b"\0\0"]),
    st.sampled_from([b"", b"x"]),
)
def test_an_ok_without_a_text_gets_that_of_one_row(affected, warnings, state, info):
    rest = {"status": 2, "warnings": warnings, "session_state": state, "capabilities": MODERN}

    def told(text):
        return frame(ok_packet(affected, 9, info=text, **rest), 7)

    assert with_row_info(told(info)) == told(info or row_info(affected, warnings))


def test_only_an_ok_has_an_insert_id_and_a_text():
    for other in (frame(b"\xff\x15\x04#28000no", 1), frame(b"\xfe\0\0\2\0", 3), b""):
        assert with_insert_id(other, 5) == with_row_info(other) == other


AUTOCOMMIT = Tracker(TrackerKind.SYSVAR, "autocommit", "OFF")
SQL_MODE = Tracker(TrackerKind.SYSVAR, "sql_mode", "ANSI")
SCHEMA = Tracker(TrackerKind.SCHEMA, "", "db_of_commerce")
CHANGED = Tracker(TrackerKind.STATE, "", "1")
GTIDS = Tracker(TrackerKind.GTIDS, "", "0-1-5")
TXSTATE = Tracker(TrackerKind.TXSTATE, "", "T_______")


def test_a_client_hears_of_what_a_server_reports_by_default_and_of_what_it_asks_for():
    state = encode_trackers([SQL_MODE, SCHEMA, CHANGED, AUTOCOMMIT])
    assert parse_trackers(shown_to(state, SHOWN_BY_DEFAULT)) == (AUTOCOMMIT,)
    assert shown_to(encode_trackers([SQL_MODE, CHANGED]), SHOWN_BY_DEFAULT) == b""
    state = encode_trackers([AUTOCOMMIT, CHANGED])
    assert shown_to(state, SHOWN_BY_DEFAULT, changes=True) == state
    assert parse_trackers(STATE_CHANGED) == (CHANGED,)
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
