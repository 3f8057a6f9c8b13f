import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import BackendError, WireError
from streamfrom.proxy.passwords.scramble import native_proof, sha2_proof, unmasked_password
from streamfrom.proxy.wire.client_auth import ClientAuth
from streamfrom.proxy.wire.constants import CACHING_SHA2, NATIVE_PASSWORD
from streamfrom.proxy.wire.handshake import encode_auth_switch
from tests.proxy.wire.accounts import KEY, NONCE


FULL_NEEDED = b"\x01\x04"


@pytest.fixture
def client():
    auth = ClientAuth("pw", is_secure=False)
    auth.begin(CACHING_SHA2, NONCE)
    return auth


def test_the_greetings_plugin_is_answered():
    auth = ClientAuth("pw", is_secure=False)
    assert auth.begin(NATIVE_PASSWORD, NONCE) == (NATIVE_PASSWORD, native_proof(b"pw", NONCE))
    assert auth.begin(CACHING_SHA2, NONCE) == (CACHING_SHA2, sha2_proof(b"pw", NONCE))


def test_a_strange_plugin_of_the_greeting_is_not_answered():
    assert ClientAuth("pw", is_secure=True).begin("ed25519", NONCE) == (CACHING_SHA2, b"")


def test_a_switch_is_followed(client):
    fresh = NONCE[::-1]
    assert client.receive(encode_auth_switch(NATIVE_PASSWORD, fresh)) == native_proof(
        b"pw", fresh
    )
    assert client.receive(encode_auth_switch(CACHING_SHA2, fresh)) == sha2_proof(b"pw", fresh)


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog", "parsec"])
def test_a_plugin_that_would_reveal_the_password_is_refused(client, plugin):
    with pytest.raises(BackendError, match=plugin) as caught:
        client.receive(encode_auth_switch(plugin, NONCE))
    assert "pw" not in str(caught.value).replace(plugin, "")
    assert caught.value.code == 2059


def test_the_fast_path_needs_no_answer(client):
    assert client.receive(b"\x01\x03") is None


def test_the_password_goes_in_clear_only_where_nobody_listens():
    auth = ClientAuth("pw", is_secure=True)
    auth.begin(CACHING_SHA2, NONCE)
    assert auth.receive(FULL_NEEDED) == b"pw\0"


def test_else_it_goes_under_the_servers_key(client):
    assert client.receive(FULL_NEEDED) == b"\x02"
    encrypted = client.receive(b"\x01" + KEY.public_pem())
    assert unmasked_password(KEY.decrypt(encrypted), NONCE) == b"pw\0"


def test_a_key_that_is_none_is_refused(client):
    client.receive(FULL_NEEDED)
    with pytest.raises(WireError):
        client.receive(b"\x01-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n")


def test_a_key_of_another_kind_is_refused(client):
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    client.receive(FULL_NEEDED)
    with pytest.raises(WireError):
        client.receive(
            b"\x01" + public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )


def test_a_password_longer_than_the_key_is_refused():
    auth = ClientAuth("p" * 200, is_secure=False)
    auth.begin(CACHING_SHA2, NONCE)
    auth.receive(FULL_NEEDED)
    with pytest.raises(WireError):
        auth.receive(b"\x01" + KEY.public_pem())


def test_the_native_plugin_has_no_further_steps():
    auth = ClientAuth("pw", is_secure=True)
    auth.begin(NATIVE_PASSWORD, NONCE)
    with pytest.raises(WireError):
        auth.receive(FULL_NEEDED)


@given(payloads=st.lists(st.binary(min_size=1, max_size=30), max_size=4))
def test_noise_raises_nothing_but_errors_of_ours(payloads):
    auth = ClientAuth("pw", is_secure=False)
    auth.begin(CACHING_SHA2, NONCE)
    try:
        for payload in payloads:
            auth.receive(payload)
    except (WireError, BackendError):
        pass
