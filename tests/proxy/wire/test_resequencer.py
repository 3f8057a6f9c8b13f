import pytest
from hypothesis import assume, given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.constants import Status
from streamfrom.proxy.wire.framing import frame, frames
from streamfrom.proxy.wire.resequencer import Resequencer
from streamfrom.proxy.wire.response_reader import AnswerKind
from streamfrom.proxy.wire.resultset import (
    column_count,
    eof_packet,
    ok_packet,
    text_row,
)
from tests.proxy.wire.streams import (
    BACKEND,
    DEFINITION,
    MODERN,
    MODERN_WITHOUT_TRACK,
    OLD,
    OLD_WITH_TRACK,
    ONE,
    RESIGNALLED,
    Done,
    Rows,
    answers,
    backend_stream,
    client_payloads,
    cut,
    dones,
    error_of,
    places,
    result_sets,
)


CLIENTS = [MODERN, MODERN_WITHOUT_TRACK, OLD, OLD_WITH_TRACK]


@given(
    parts=answers(),
    places=places,
    capabilities=st.sampled_from(CLIENTS),
    sequence=st.integers(0, 255),
    keeps=st.booleans(),
    more=st.booleans(),
)
def test_any_cut_of_the_stream_gives_the_client_the_same_packets(
    parts, places, capabilities, sequence, keeps, more
):
    expected = client_payloads(parts, capabilities, keeps_state=keeps, more_results=more)
    reader = Resequencer(
        capabilities, next_sequence=sequence, shown=bytes if keeps else None, more_results=more
    )
    out = b"".join(reader.feed(piece) for piece in cut(backend_stream(parts), places))
    assert (out, reader.next_sequence) == frames(expected, sequence)
    assert reader.done
    assert reader.rows == sum(len(part.rows) for part in parts if isinstance(part, Rows))


@given(
    shards=st.lists(result_sets(end=dones), min_size=1, max_size=4),
    places=places,
    capabilities=st.sampled_from(CLIENTS),
)
def test_the_answers_of_several_shards_become_one(shards, places, capabilities):
    # Nobody knows behind the first shard's columns how many warnings all of them will have.
    assume(len(shards) == 1 or any(shard.rows for shard in shards))
    out = b""
    sequence = 1
    for index, shard in enumerate(shards):
        is_last = index == len(shards) - 1
        reader = Resequencer(
            capabilities, next_sequence=sequence, columns=not index, final=is_last
        )
        out += b"".join(reader.feed(piece) for piece in cut(backend_stream([shard]), places))
        assert reader.done
        sequence = reader.next_sequence
    whole = Rows(
        shards[0].definitions,
        tuple(row for shard in shards for row in shard.rows),
        shards[-1].end,
    )
    assert (out, sequence) == frames(client_payloads([whole], capabilities), 1)


@pytest.mark.parametrize("capabilities", CLIENTS)
def test_the_last_ok_counts_the_warnings_of_earlier_shards(capabilities):
    last = Rows((DEFINITION,), ONE.rows, Done(warnings=2))
    reader = Resequencer(capabilities, next_sequence=4, columns=False, earlier_warnings=3)
    out = reader.feed(backend_stream([last]))
    end = Done(warnings=5).packet(is_eof=True, capabilities=capabilities)
    assert out == frames([*ONE.rows, end], 4)[0]


def test_a_result_without_rows_has_both_ends_while_a_procedure_has_a_cursor_open():
    # MariaDB's FOR record IN (SELECT …) DO SELECT … LIMIT 0; END FOR has one open at each SELECT.
    status = int(Status.CURSOR_EXISTS | Status.AUTOCOMMIT)
    empty = Rows((DEFINITION,), (), Done(status=status))
    out = Resequencer(OLD).feed(backend_stream([empty]))
    ends = [eof_packet(Status.AUTOCOMMIT), eof_packet(status)]
    assert out == frames([column_count(1), DEFINITION, *ends], 1)[0]


def test_a_list_of_fields_ends_as_the_client_expects():
    end = ok_packet(status=2, capabilities=BACKEND, header=0xFE)
    stream = frames([DEFINITION, DEFINITION, end], 1)[0]
    out = Resequencer(OLD, AnswerKind.ROWS).feed(stream)
    assert out == frames([DEFINITION, DEFINITION, eof_packet(2)], 1)[0]


def test_a_file_request_gets_the_clients_number():
    reader = Resequencer(OLD, next_sequence=7, allows_local_infile=True)
    assert reader.feed(frame(b"\xfbf.csv", 1)) == frame(b"\xfbf.csv", 7)
    assert reader.wants_local_infile == b"f.csv"
    assert reader.next_sequence == 8
    assert reader.infile_sequence == 2
    # Three packets of data, 8 to 10 from the client, went on as 2 to 4.
    ok = ok_packet(5, status=2, capabilities=BACKEND)
    pieces = cut(frame(ok, 5), [1, 2, 6])
    assert b"".join(reader.feed(piece) for piece in pieces) == frame(ok, 11)
    assert reader.next_sequence == 12
    with pytest.raises(WireError):
        Resequencer(OLD).feed(frame(b"\xfbf.csv", 1))
    with pytest.raises(WireError):
        Resequencer(OLD, allows_local_infile=True).feed(frames([b"\xfbf.csv", b"\x00"], 1)[0])


@given(
    rows=st.integers(0, 3),
    places=places,
    status=st.sampled_from([Status.MORE_RESULTS_EXISTS, Status.PS_OUT_PARAMS]),
)
def test_an_old_client_is_told_behind_the_columns_what_result_of_a_call_this_is(
    rows, places, status
):
    flags = status | Status.MORE_RESULTS_EXISTS | Status.AUTOCOMMIT
    result = Rows((DEFINITION,), (text_row([b"1"]),) * rows, Done(status=flags))
    reader = Resequencer(OLD, call=True)
    out = b"".join(map(reader.feed, cut(backend_stream([result, Done()]), places)))
    known = flags if rows < 2 else Status.MORE_RESULTS_EXISTS | Status.AUTOCOMMIT
    head = [column_count(1), DEFINITION, eof_packet(known)]
    body = [text_row([b"1"])] * rows + [eof_packet(flags)]
    assert out.startswith(frames([*head, *body], 1)[0])
    assert reader.done


@pytest.mark.parametrize("call", [False, True])
@given(places=places)
def test_an_older_clients_eof_before_an_error_reaches_every_client_once(call, places):
    for capabilities in CLIENTS:
        reader = Resequencer(
            capabilities, next_sequence=1, call=call, columns_status=2 if call else 10
        )
        sent = b"".join(map(reader.feed, cut(RESIGNALLED, places)))
        assert sent == RESIGNALLED
        assert reader.done
        assert error_of(reader).code == 1146
