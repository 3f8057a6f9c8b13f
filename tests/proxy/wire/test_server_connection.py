import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import (
    AccessDenied,
    CertificateRequired,
    ConnectionMemoryExceeded,
    InsecureTransport,
    OutOfOrder,
    PacketTooLarge,
    ServerShutdown,
    TooManyConnections,
    UnknownDatabase,
    WireError,
)
from streamfrom.proxy.memory import Memory
from streamfrom.proxy.passwords.scramble import native_proof, sha2_proof
from streamfrom.proxy.wire import commands
from streamfrom.proxy.wire.constants import NATIVE_PASSWORD, PROXY_OFFER, Capability
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.login.auth import Authenticated, Deferred
from streamfrom.proxy.wire.login.handshake import (
    Greeting,
    LoginRequest,
    decode_greeting,
    encode_login,
    encode_tls_request,
)
from streamfrom.proxy.wire.resultset import parse_err
from streamfrom.proxy.wire.server_connection import (
    Closed,
    CommandReceived,
    ConnectionPhase,
    InfileData,
    LoginAttempt,
    ServerConnection,
    TlsRequested,
    refusal,
)
from tests.proxy.wire.accounts import (
    KEY,
    NONCE,
    PASSWORD,
    PromptConnection,
    authenticator,
    in_one_go,
)
from tests.proxy.wire.peers import PING, encode_change_user, unframed
from tests.proxy.wire.streams import cut, places


def connection(
    kind=PromptConnection, *, tls=False, kinds=("empty", "clear", "crypt", "native"), **options
):
    offer = PROXY_OFFER | (Capability.SSL if tls else 0)
    greeting = Greeting("8.0.36", 7, NONCE, int(offer))
    server = kind(greeting, authenticator(*kinds, rsa_key=KEY), host="h", **options)
    assert decode_greeting(server.data_to_send()[4:]) == greeting
    return server


def login(user="empty", password="", flags=PROXY_OFFER, database=None, plugin=None):
    proof = sha2_proof(password.encode(), NONCE)
    return LoginRequest(
        user, proof, database, int(flags), 45, plugin=plugin or "caching_sha2_password"
    )


def logged_in(**options):
    server = connection(**options)
    *_, proof = server.receive_data(frame(encode_login(login()), 1))
    assert proof == Authenticated("empty")
    server.accept()
    assert server.phase is ConnectionPhase.COMMAND
    server.data_to_send()
    return server


def following(data, sequence):
    """Return the number of the packet that answers *data*, *sequence* where nothing was sent."""
    while data:
        sequence = data[3] + 1
        data = data[4 + int.from_bytes(data[:3], "little") :]
    return sequence


@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_a_proof_is_judged_when_its_turn_comes_and_what_came_behind_it_waits(password):
    server = connection(ServerConnection)
    stream = frame(encode_login(login("clear", password)), 1) + commands.query(b"select 1")
    attempt, deferred = server.receive_data(stream)
    assert isinstance(attempt, LoginAttempt)
    reached = Deferred(is_costly=False), ConnectionPhase.JUDGING
    assert (deferred, server.phase) == reached
    assert server.receive_data(b"") == []
    (event,) = in_one_go(server.judge())
    if password == PASSWORD:
        assert event == Authenticated("clear")
        server.accept()
        assert server.receive_data(b"") == [CommandReceived(b"\x03select 1", 1)]
    else:
        assert isinstance(event.error, AccessDenied)
        assert server.phase is ConnectionPhase.CLOSED


def test_a_client_with_tls_may_lack_the_certificate_that_is_required():
    server = connection(tls=True, lacks_certificate=lambda: True)
    server.receive_data(frame(encode_tls_request(login()), 1))
    server.tls_started()
    (closed,) = server.receive_data(
        frame(encode_login(login(flags=PROXY_OFFER | Capability.SSL)), 2)
    )
    assert isinstance(closed.error, CertificateRequired)


@given(data=st.binary(max_size=200), places=places)
def test_no_command_is_read_after_a_refused_login(data, places):
    server = connection()
    stream = (
        frame(encode_login(login("clear", "wrong")), 1) + commands.query(b"select 1") + data
    )
    attempt, closed = (e for piece in cut(stream, places) for e in server.receive_data(piece))
    assert isinstance(attempt, LoginAttempt)
    assert isinstance(closed.error, AccessDenied)
    (error,) = unframed(server.data_to_send(), 2)
    assert parse_err(error).sqlstate == "28000"
    assert server.phase is ConnectionPhase.CLOSED


@given(sqls=st.lists(st.binary(max_size=40), max_size=5), places=places)
def test_any_cut_of_the_stream_gives_the_same_events(sqls, places):
    stream = frame(encode_login(login()), 1)
    server = connection()
    events = [event for piece in cut(stream, places) for event in server.receive_data(piece)]
    assert events == [LoginAttempt(login(), is_change=False), Authenticated("empty")]
    server.accept()
    stream = b"".join(commands.query(sql) for sql in sqls)
    events = [event for piece in cut(stream, places) for event in server.receive_data(piece)]
    assert events == [CommandReceived(b"\x03" + sql, 1) for sql in sqls]


def test_what_follows_a_request_for_tls_goes_to_the_tls_layer():
    server = connection(tls=True)
    stream = frame(encode_tls_request(login()), 1) + b"\x16\x03\x01"
    assert server.receive_data(stream) == [TlsRequested(b"\x16\x03\x01")]
    assert server.phase is ConnectionPhase.TLS
    assert server.receive_data(frame(encode_login(login()), 2)) == [], (
        "plain text is not read now"
    )


def test_only_the_login_inside_tls_counts():
    server = connection(tls=True)
    forged = login(flags=PROXY_OFFER | Capability.FOUND_ROWS)
    server.receive_data(frame(encode_tls_request(forged), 1))
    server.tls_started()
    flags = PROXY_OFFER & ~Capability.FOUND_ROWS | Capability.SSL
    server.receive_data(frame(encode_login(login(flags=flags)), 2))
    assert server.is_tls
    assert not server.capabilities & Capability.FOUND_ROWS


def test_tls_is_refused_where_it_was_not_offered_and_a_login_in_the_clear_where_required():
    (closed,) = connection().receive_data(frame(encode_tls_request(login()), 1))
    assert isinstance(closed.error, WireError)
    server = connection(tls=True, requires_tls=True)
    (closed,) = server.receive_data(frame(encode_login(login()), 1))
    assert isinstance(closed.error, InsecureTransport)
    (error,) = unframed(server.data_to_send(), 2)
    assert parse_err(error).code == 3159
    on_a_socket = connection(tls=True, requires_tls=True, is_secure=True)
    events = on_a_socket.receive_data(frame(encode_login(login()), 1))
    assert events[-1] == Authenticated("empty")


def test_a_change_of_user_starts_a_new_login_on_the_same_connection():
    server = logged_in()
    change = LoginRequest(
        "clear", b"stale", "shop", PROXY_OFFER, 45, plugin=NATIVE_PASSWORD, attributes={}
    )
    (attempt,) = server.receive_data(frame(encode_change_user(change), 0))
    assert attempt.is_change
    assert server.phase is ConnectionPhase.AUTHENTICATING
    (switch,) = unframed(server.data_to_send(), 1)
    # As servers do: libmariadb answers with the nonce of its login, whatever the switch says.
    assert switch.split(b"\0", 1)[1][:20] == NONCE
    proof = native_proof(PASSWORD.encode(), NONCE)
    assert server.receive_data(frame(proof, 2)) == [Authenticated("clear")]
    server.accept()
    assert unframed(server.data_to_send(), 3)[0][0] == 0
    assert server.receive_data(PING) == [CommandReceived(b"\x0e", 1)]


def test_file_data_is_read_where_it_is_expected_and_nowhere_else():
    server = logged_in()
    server.expect_infile(2)
    events = server.receive_data(frame(b"a,b\n", 2) + frame(b"", 3) + PING)
    assert events == [InfileData(b"a,b\n"), InfileData(b""), CommandReceived(b"\x0e", 1)]


def test_bytes_that_are_too_many_or_bad_close_with_an_error():
    (closed,) = connection().receive_data(b"\x01\x00\x01\x01")
    assert isinstance(closed.error, PacketTooLarge)
    for data, error in (
        (commands.query(b"x" * 100), PacketTooLarge),
        (b"\x01\x00\x00\x05x", OutOfOrder),
        (frame(b"", 0), WireError),
    ):
        server = logged_in(packet_bytes_max=100)
        (closed,) = server.receive_data(data)
        assert isinstance(closed.error, error)
        assert parse_err(server.data_to_send()[4:]).code == closed.error.mysql_code
    assert PacketTooLarge.mysql_code == 1153


def test_a_shutdown_is_told_once_and_a_refusal_has_a_sqlstate_for_who_is_in():
    server = logged_in()
    server.refuse(ServerShutdown())
    server.refuse(ServerShutdown())
    (error,) = unframed(server.data_to_send(), 0)
    assert parse_err(error).code == 1053
    assert refusal(UnknownDatabase("x"), PROXY_OFFER)[4:14] == b"\xff\x19\x04#42000U"
    assert refusal(TooManyConnections()) == b"\x17\x00\x00\x00\xff\x10\x04Too many connections"


@given(
    data=st.lists(st.binary(max_size=80), max_size=4),
    head=st.sampled_from([None, b"", b"\x11"]),
    is_in=st.booleans(),
)
def test_noise_closes_and_never_raises(data, head, is_in):
    server = logged_in() if is_in else connection(tls=True)
    for piece in data:
        noise = piece if head is None else frame(head + piece, 0 if is_in else 1)
        for event in server.receive_data(noise):
            if isinstance(event, Closed):
                assert server.phase is ConnectionPhase.CLOSED


@given(data=st.data(), kind=st.sampled_from(["clear", "native", "crypt", "nobody"]))
def test_noise_during_a_login_never_logs_in(data, kind):
    server = connection(is_secure=data.draw(st.booleans()))
    plugin = data.draw(st.sampled_from([None, NATIVE_PASSWORD, "x"]))
    server.receive_data(frame(encode_login(login(kind, "wrong", plugin=plugin)), 1))
    sequence = 2
    for answer in data.draw(st.lists(st.binary(max_size=64), max_size=3)):
        sequence = following(server.data_to_send(), sequence)
        for event in server.receive_data(frame(answer, sequence)):
            assert isinstance(event, Closed)
    assert server.phase in (ConnectionPhase.AUTHENTICATING, ConnectionPhase.CLOSED)


def test_many_small_packets_are_taken_in_bites_and_none_is_lost():
    server = logged_in()
    events = server.receive_data(frame(PING, 0) * 1700)
    counts = [len(events)]
    while server.holds_back:
        events = server.receive_data(b"")
        counts.append(len(events))
    assert sum(counts) == 1700
    assert max(counts) <= 501
    assert server.receive_data(frame(PING, 0)) == [CommandReceived(PING, 1)]
    assert not server.holds_back


@given(st.lists(st.integers(0, 3000)), places)
def test_what_is_not_whole_is_counted_until_it_is(sizes, places):
    memory = Memory()
    server = logged_in(memory=memory)
    stream = b"".join(frame(b"\x03" + b"x" * size, 0) for size in sizes)
    came = taken = 0
    for part in cut(stream, places):
        came += len(part)
        for event in server.receive_data(part):
            assert isinstance(event, CommandReceived)
            taken += 4 + len(event.payload)
        assert memory.used_bytes == came - taken
    assert memory.used_bytes == 0


def test_a_command_that_is_not_whole_closes_where_it_is_too_much():
    memory = Memory(lambda: 1000, ConnectionMemoryExceeded)
    server = logged_in(memory=memory)
    slack_bytes = 1 << 20
    assert server.receive_data(frame(b"\x03" + b"x" * 3_000_000, 0)[: slack_bytes + 1000]) == []
    (closed,) = server.receive_data(b"x")
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, ConnectionMemoryExceeded)
    assert b"Connection memory limit 1000 bytes exceeded" in server.data_to_send()
    assert server.receive_data(b"x" * 3000) == []
    assert memory.used_bytes == 0
