import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import BackendError, WireError
from streamfrom.proxy.passwords.scramble import native_proof, sha2_proof
from streamfrom.proxy.wire.client_connection import ClientConnection, LoginPhase
from streamfrom.proxy.wire.constants import (
    BACKEND_NEEDS,
    CACHING_SHA2,
    MARIADB_METADATA,
    NATIVE_PASSWORD,
    PROXY_OFFER,
    Capability,
)
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.login.handshake import (
    Greeting,
    decode_login,
    encode_auth_switch,
    is_tls_request,
)
from streamfrom.proxy.wire.resultset import err_packet, ok_packet
from tests.proxy.wire.accounts import DICE, NONCE
from tests.proxy.wire.streams import cut, places


# A server of MySQL offers query attributes, too, which change how statements are laid out.
QUERY_ATTRIBUTES = 1 << 27
OFFER = int(PROXY_OFFER | Capability.SSL | QUERY_ATTRIBUTES)
OK = ok_packet(status=2, capabilities=PROXY_OFFER)


def greeting(capabilities=OFFER, plugin=CACHING_SHA2):
    return frame(Greeting("8.4.0", 42, NONCE, int(capabilities), plugin=plugin).encode(), 0)


def greeted(**options):
    client = ClientConnection("app", "pw", dice=DICE, **options)
    assert client.receive_data(greeting()) is LoginPhase.AUTHENTICATING
    return client, decode_login(client.data_to_send()[4:])


def test_a_login_asks_for_what_answers_rely_on_and_no_more():
    client, login = greeted(options=int(Capability.FOUND_ROWS), database="shop")
    assert login.user == "app"
    assert login.database == "shop"
    assert login.response == sha2_proof(b"pw", NONCE)
    assert login.capabilities & BACKEND_NEEDS == BACKEND_NEEDS
    assert login.capabilities & Capability.FOUND_ROWS
    assert not login.capabilities & Capability.MULTI_STATEMENTS
    assert not login.capabilities & QUERY_ATTRIBUTES
    assert client.capabilities == login.capabilities
    assert (client.greeting.connection_id, client.greeting.server_version) == (42, "8.4.0")


@given(places=places)
def test_any_cut_of_the_stream_leads_to_the_same_login(places):
    client = ClientConnection("app", "pw", dice=DICE)
    *begun, last = (client.receive_data(piece) for piece in cut(greeting(), places))
    assert set(begun) <= {LoginPhase.GREETING}
    assert last is LoginPhase.AUTHENTICATING
    first = client.data_to_send()
    assert decode_login(first[4:]).response == sha2_proof(b"pw", NONCE)
    switch = frame(encode_auth_switch(NATIVE_PASSWORD, NONCE[::-1]), 2)
    for piece in cut(switch, places):
        assert client.receive_data(piece) is LoginPhase.AUTHENTICATING
    assert client.data_to_send() == frame(native_proof(b"pw", NONCE[::-1]), 3)
    *waiting, last = (client.receive_data(piece) for piece in cut(frame(OK, 4), places))
    assert set(waiting) <= {LoginPhase.AUTHENTICATING}
    assert last is client.phase is LoginPhase.READY


def test_tls_is_used_where_wanted_and_offered():
    client = ClientConnection("app", "pw", dice=DICE, wants_tls=True)
    assert client.receive_data(greeting()) is LoginPhase.TLS
    request = client.data_to_send()
    assert is_tls_request(request[4:])
    assert b"app" not in request
    client.tls_started()
    login = client.data_to_send()
    assert login[3] == 2
    assert decode_login(login[4:]).user == "app"
    client.receive_data(frame(b"\x01\x04", 3))
    assert client.data_to_send() == frame(b"pw\0", 4)


def test_a_server_that_is_too_old_or_lacks_the_tls_that_is_required_is_refused():
    with pytest.raises(BackendError, match="DEPRECATE_EOF"):
        ClientConnection("app", "pw", dice=DICE).receive_data(
            greeting(OFFER & ~Capability.DEPRECATE_EOF)
        )
    client = ClientConnection("app", "pw", dice=DICE, requires_tls=True)
    with pytest.raises(BackendError, match="TLS"):
        client.receive_data(greeting(PROXY_OFFER))
    assert client.data_to_send() == b""
    lenient = ClientConnection("app", "pw", dice=DICE, wants_tls=True)
    assert lenient.receive_data(greeting(PROXY_OFFER)) is LoginPhase.AUTHENTICATING


def test_extended_metadata_is_asked_for_a_client_that_has_it_and_never_left_out():
    mariadb = OFFER & ~Capability.LONG_PASSWORD | MARIADB_METADATA
    for wanted in (0, MARIADB_METADATA):
        client = ClientConnection("app", "pw", dice=DICE, options=wanted)
        client.receive_data(greeting(mariadb))
        assert client.capabilities & MARIADB_METADATA == wanted
    with pytest.raises(BackendError, match=r"8\.4\.0 lacks the extended metadata"):
        ClientConnection("app", "pw", dice=DICE, options=MARIADB_METADATA).receive_data(
            greeting(OFFER)
        )


def test_a_refusal_keeps_the_servers_words_and_may_come_instead_of_a_greeting():
    client, _ = greeted()
    fast_path = frame(b"\x01\x03", 2)
    assert client.receive_data(fast_path) is LoginPhase.AUTHENTICATING
    assert client.data_to_send() == b""
    with pytest.raises(BackendError, match="Access denied") as caught:
        client.receive_data(frame(err_packet(1045, "28000", "Access denied", PROXY_OFFER), 3))
    assert caught.value.wire_code() == (1045, "28000")
    assert client.phase is LoginPhase.CLOSED
    with pytest.raises(BackendError, match="Too many connections") as caught:
        ClientConnection("app", "pw", dice=DICE).receive_data(
            frame(b"\xff\x10\x04Too many connections", 0)
        )
    assert caught.value.code == 1040


def test_a_server_that_speaks_out_of_turn_is_refused():
    with pytest.raises(WireError):
        ClientConnection("a", "pw", dice=DICE, wants_tls=True).receive_data(
            greeting() + b"injected"
        )
    client, _ = greeted()
    with pytest.raises(WireError):
        client.receive_data(frame(OK, 2) + frame(OK, 0))


@given(data=st.binary(max_size=120), framed=st.booleans(), is_greeted=st.booleans())
def test_noise_raises_nothing_but_errors_of_ours(data, framed, is_greeted):
    client = ClientConnection("app", "pw", dice=DICE)
    if is_greeted:
        client.receive_data(greeting())
    try:
        client.receive_data(frame(data, 2 if is_greeted else 0) if framed else data)
    except (WireError, BackendError):
        assert client.phase is LoginPhase.CLOSED
