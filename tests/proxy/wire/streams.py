"""Byte streams for the wire tests: backends' replies, cut in every possible way."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from unittest import mock

from hypothesis import strategies as st

from streamfrom.proxy.wire import (
    framing,
    pass_through,
    resequencer,
    response_reader,
    row_collector,
)
from streamfrom.proxy.wire.constants import PROXY_OFFER, Capability, Status
from streamfrom.proxy.wire.framing import frames
from streamfrom.proxy.wire.response_reader import ResponseReader
from streamfrom.proxy.wire.resultset import (
    ColumnDefinition,
    Err,
    Ok,
    Tracker,
    column_count,
    column_definition,
    eof_packet,
    err_packet,
    ok_packet,
    text_row,
)
from tests.proxy.wire.peers import encode_trackers


# A modern driver, and one like PyMySQL.
MODERN = PROXY_OFFER
MODERN_WITHOUT_TRACK = PROXY_OFFER & ~Capability.SESSION_TRACK
OLD = PROXY_OFFER & ~(Capability.DEPRECATE_EOF | Capability.SESSION_TRACK)
OLD_WITH_TRACK = PROXY_OFFER & ~Capability.DEPRECATE_EOF

BACKEND = PROXY_OFFER  # as far as the layout of replies depends on it


@dataclass(frozen=True)
class Done:
    """An OK packet as a backend sends it."""

    affected_rows: int = 0
    last_insert_id: int = 0
    status: int = int(Status.AUTOCOMMIT)
    warnings: int = 0
    info: bytes = b""
    trackers: tuple[Tracker, ...] = ()

    def packet(
        self,
        *,
        is_eof: bool,
        capabilities: int = BACKEND,
        keeps_state: bool = True,
        add: int = 0,
    ) -> bytes:
        """Return the packet for a peer with these flags, optionally without the session state."""
        status = self.status | add
        if is_eof and not capabilities & Capability.DEPRECATE_EOF:
            return eof_packet(status, self.warnings)
        return ok_packet(
            self.affected_rows,
            self.last_insert_id,
            status=status,
            warnings=self.warnings,
            info=self.info,
            capabilities=capabilities,
            session_state=encode_trackers(self.trackers) if keeps_state else b"",
            header=0xFE if is_eof else 0x00,
        )


@dataclass(frozen=True)
class Failed:
    """An ERR packet."""

    code: int = 1064
    text: str = "no"

    def packet(self) -> bytes:
        return err_packet(self.code, "42000", self.text, BACKEND)


@dataclass(frozen=True)
class Rows:
    """A result set."""

    definitions: tuple[bytes, ...]
    rows: tuple[bytes, ...]
    end: Done | Failed


Part = Done | Failed | Rows
MORE = int(Status.MORE_RESULTS_EXISTS)
DEFINITION = column_definition(ColumnDefinition("id"))
ONE = Rows((DEFINITION,), (text_row([b"1"]),), Done())


def backend_stream(parts: list[Part]) -> bytes:
    """Return a backend's bytes for these results, all but the last announcing more."""
    return frames(backend_payloads(parts), 1)[0]


def backend_payloads(parts: list[Part]) -> list[bytes]:
    return client_payloads(parts, BACKEND, keeps_state=True)


def client_payloads(
    parts: list[Part],
    capabilities: int,
    *,
    keeps_state: bool = False,
    more_results: bool = False,
) -> list[bytes]:
    """Return the packets that a client with these flags should get: the slow, obvious way."""
    keeps_state = keeps_state and bool(capabilities & Capability.SESSION_TRACK)
    payloads: list[bytes] = []
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        add = 0 if is_last and not more_results else MORE
        if isinstance(part, Failed):
            payloads.append(part.packet())
            continue
        end: Done | Failed = part if isinstance(part, Done) else part.end
        if isinstance(part, Rows):
            payloads += [column_count(len(part.definitions)), *part.definitions]
            if not capabilities & Capability.DEPRECATE_EOF:
                warnings = end.warnings if isinstance(end, Done) and not part.rows else 0
                payloads.append(eof_packet(Status.AUTOCOMMIT, warnings))
            payloads += part.rows
        if isinstance(end, Failed):
            payloads.append(end.packet())
        else:
            payloads.append(
                end.packet(
                    is_eof=isinstance(part, Rows),
                    capabilities=capabilities,
                    keeps_state=keeps_state,
                    add=add,
                )
            )
    return payloads


def ok_of(reader: ResponseReader) -> Ok:
    assert reader.ok is not None
    return reader.ok


def error_of(reader: ResponseReader) -> Err:
    assert reader.error is not None
    return reader.error


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Return the same bytes in pieces, none of them empty."""
    edges = sorted({0, *(place % (len(data) + 1) for place in places), len(data)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


PATCHED = (response_reader, framing, pass_through, resequencer, row_collector)


@contextlib.contextmanager
def small_frames(size: int):
    """Use frames of *size* bytes instead of 16 MiB, so that long packets fit into a test."""
    with contextlib.ExitStack() as stack:
        for module in PATCHED:
            stack.enter_context(mock.patch.object(module, "FRAME_BYTES_MAX", size))
        yield


# --- strategies ------------------------------------------------------------------------

places = st.lists(st.integers(0, 1 << 16), max_size=12)

_statuses = st.sampled_from(
    [0, int(Status.AUTOCOMMIT), int(Status.AUTOCOMMIT | Status.IN_TRANS), 0x22, 0x8002]
)
_counts = st.sampled_from([0, 1, 250, 251, 65535, 65536, 1 << 40])
_trackers = st.lists(
    st.sampled_from(
        [
            Tracker(0, "autocommit", "OFF"),
            Tracker(1, "", "commerce"),
            Tracker(2, "", "1"),
            Tracker(3, "", "0-1-5"),
            Tracker(5, "", "T_______"),
        ]
    ),
    max_size=2,
).map(tuple)

dones = st.builds(
    Done,
    _counts,
    _counts,
    _statuses,
    st.sampled_from([0, 1, 65535]),
    st.sampled_from([b"", b"Rows matched: 1  Changed: 1  Warnings: 0"]),
    _trackers,
)
failures = st.builds(Failed, st.integers(1, 65535), st.text(max_size=20))

_definitions = st.sampled_from(
    [
        column_definition(ColumnDefinition("id", "t", "s", "t", "id")),
        column_definition(ColumnDefinition("a_longer_name_than_usual", "t", charset=63)),
    ]
)
_values = st.one_of(st.none(), st.binary(max_size=8), st.just(b"x" * 251))


@st.composite
def result_sets(draw, *, end=None):
    definitions = draw(st.lists(_definitions, min_size=1, max_size=3))
    row = st.lists(_values, min_size=len(definitions), max_size=len(definitions))
    rows = [text_row(values) for values in draw(st.lists(row, max_size=6))]
    ending = draw(end if end is not None else st.one_of(dones, dones, failures))
    return Rows(tuple(definitions), tuple(rows), ending)


@st.composite
def answers(draw) -> list[Part]:
    """Draw a reply of one to three results; an error ends it."""
    good = st.one_of(dones, result_sets(end=dones))
    parts: list[Part] = draw(st.lists(good, max_size=2))
    parts.append(draw(st.one_of(good, failures, result_sets(end=failures))))
    return parts


# MySQL's reply to a procedure whose SELECT fails in a function whose handler says RESIGNAL.
RESIGNALLED = frames(
    [
        column_count(1),
        column_definition(ColumnDefinition("f1()")),
        b"\xfe\0\0\x0a\0",
        b"\xff\x7a\x04#42S02Table 'd.none' doesn't exist",
    ],
    1,
)[0]
