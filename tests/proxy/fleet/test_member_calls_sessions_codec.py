from hypothesis import given, strategies as st

from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.member_calls import (
    ASKERS,
    INFO_BYTES_MAX,
    decode_process,
    encode_process,
)
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sessions.services import Asker


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.builds(
        Process,
        st.integers(0, (1 << 32) - 1),
        TEXTS,
        TEXTS,
        st.none() | TEXTS,
        TEXTS,
        st.integers(0, 1 << 40),
        TEXTS,
        st.none() | st.binary(),
    )
)
def test_a_line_comes_as_it_was(process):
    data = encode_process(process).SerializeToString()
    assert decode_process(pb.Session.FromString(data)) == process


@given(st.builds(Asker, TEXTS, st.booleans()))
def test_who_asks_comes_as_it_was_and_of_a_long_text_the_beginning(asker):
    data = ASKERS.encode(asker).SerializeToString()
    assert ASKERS.decode(pb.Asker.FromString(data)) == asker
    process = Process(1, "eve", "h", None, "Query", 0, "", b"x" * (INFO_BYTES_MAX + 1))
    assert decode_process(encode_process(process)).info == b"x" * INFO_BYTES_MAX
