import ast
from base64 import b64decode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import BackendError, WireError
from streamfrom.proxy.passwords.scramble import (
    native_proof,
    sha2_proof,
    sign,
    unmasked_password,
)
from streamfrom.proxy.wire.constants import CACHING_SHA2, NATIVE_PASSWORD
from streamfrom.proxy.wire.login.client_auth import ClientAuth
from streamfrom.proxy.wire.login.handshake import encode_auth_switch
from tests.cases import cases
from tests.proxy.wire.accounts import DICE, KEY, NONCE


FULL_NEEDED = b"\x01\x04"
OF_ANOTHER_KIND = ec.generate_private_key(ec.SECP256R1()).public_key()


@pytest.fixture
def client():
    auth = ClientAuth(b"pw", is_secure=False, dice=DICE)
    auth.begin(CACHING_SHA2, NONCE)
    return auth


def test_the_greetings_plugin_is_answered_unless_it_is_a_strange_one():
    auth = ClientAuth(b"pw", is_secure=True, dice=DICE)
    assert auth.begin(NATIVE_PASSWORD, NONCE) == (NATIVE_PASSWORD, native_proof(b"pw", NONCE))
    assert auth.begin(CACHING_SHA2, NONCE) == (CACHING_SHA2, sha2_proof(b"pw", NONCE))
    assert auth.begin("ed25519", NONCE) == (CACHING_SHA2, b"")


@pytest.mark.parametrize("plugin", ["mysql_old_password", "auth_gssapi_client", "x"])
def test_a_plugin_that_no_password_answers_is_refused(client, plugin):
    with pytest.raises(BackendError, match=plugin) as caught:
        client.receive(encode_auth_switch(plugin, NONCE))
    assert "pw" not in str(caught.value)
    assert caught.value.code == 2059


@pytest.mark.parametrize(
    ("plugin", "data"),
    # MariaDB's own PAM plugin waits for the password without a question.
    [("mysql_clear_password", b""), ("dialog", b"\x05Password: "), ("dialog", b"")],
)
def test_the_password_itself_goes_over_a_secure_transport_alone(client, plugin, data):
    switch = b"\xfe" + plugin.encode() + b"\0" + data
    with pytest.raises(BackendError, match=f"'{plugin}'; it is sent over TLS or a") as caught:
        client.receive(switch)
    assert "pw" not in str(caught.value).replace(plugin, "")
    secure = ClientAuth(b"pw", is_secure=True, dice=DICE)
    secure.begin(CACHING_SHA2, NONCE)
    assert secure.receive(switch) == b"pw\0"


@cases(questions=ast.literal_eval)
def test_pam_is_told_the_password_once_and_nothing_else(questions):
    auth = ClientAuth(b"pw", is_secure=True, dice=DICE)
    auth.begin(CACHING_SHA2, NONCE)
    switch, *others = questions
    with pytest.raises((BackendError, WireError)):  # noqa: PT012 - which of them, the case says
        auth.receive(b"\xfedialog\0" + switch)
        for question in others:
            auth.receive(question)


def test_sha256_password_is_told_in_clear_by_tls_alone():
    switch = encode_auth_switch("sha256_password", NONCE)
    by_socket = ClientAuth(b"pw", is_secure=True, dice=DICE)
    assert by_socket.receive(switch) == b"\x01"
    encrypted = by_socket.receive(b"\x01" + KEY.public_pem()) or b""
    assert unmasked_password(KEY.decrypt(encrypted), NONCE) == b"pw\0"
    by_tls = ClientAuth(b"pw", is_secure=True, is_tls=True, dice=DICE)
    assert by_tls.receive(switch) == b"pw\0"


@pytest.mark.parametrize("plugin", ["parsec", "client_ed25519"])
def test_ed25519_signs_the_nonce_and_none_of_another_length(client, plugin):
    nonce = bytes(range(1, 33))
    assert client.receive(b"\xfeclient_ed25519\0" + nonce) == sign(b"pw", nonce)
    with pytest.raises(WireError):
        client.receive(encode_auth_switch(plugin, NONCE))


# As the manual of MariaDB has it: CREATE USER … IDENTIFIED VIA PARSEC USING PASSWORD('MyPassword123!').
PARSEC = "MyPassword123!"
EXT_SALT = b"P\0" + b64decode("lhXyNv1cIxpB8EnTxR7ON7S7")
PUBLIC_KEY = b64decode("1l3rWRW1/jw45yrvYXB8eh02wzk7lcJcz4CMcWw2b+8=")


@pytest.mark.parametrize("header", [b"", b"\x01"])
def test_parsec_signs_both_nonces_by_the_key_that_the_server_knows(header):
    nonce = bytes(range(1, 33))
    auth = ClientAuth(PARSEC.encode(), is_secure=False, dice=DICE)
    auth.begin(CACHING_SHA2, NONCE)
    assert auth.receive(b"\xfeparsec\0" + nonce) == b""
    answer = auth.receive(header + EXT_SALT) or b""
    assert answer[:32] == DICE
    # Raises InvalidSignature otherwise.
    Ed25519PublicKey.from_public_bytes(PUBLIC_KEY).verify(answer[32:], nonce + DICE)


@pytest.mark.parametrize(
    "salt", [b"", b"P\0short", b"Q" + EXT_SALT[1:], b"P\x04" + EXT_SALT[2:], EXT_SALT + b"x"]
)
def test_a_salt_that_is_none_is_refused(salt):
    auth = ClientAuth(PARSEC.encode(), is_secure=False, dice=DICE)
    auth.receive(b"\xfeparsec\0" + bytes(32))
    with pytest.raises(WireError):
        auth.receive(salt or b"\x01")


@pytest.mark.parametrize(
    "key",
    [
        b"-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n",
        OF_ANOTHER_KIND.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    ],
)
def test_a_key_that_is_no_rsa_key_is_refused(client, key):
    client.receive(FULL_NEEDED)
    with pytest.raises(WireError):
        client.receive(b"\x01" + key)


@pytest.mark.parametrize(
    ("password", "plugin", "packets"),
    [
        ("p" * 300, CACHING_SHA2, [FULL_NEEDED, b"\x01" + KEY.public_pem()]),
        ("pw", NATIVE_PASSWORD, [FULL_NEEDED]),
    ],
    ids=["longer than the key", "a further step of the native plugin"],
)
def test_what_cannot_be_answered_is_refused(password, plugin, packets):
    auth = ClientAuth(password.encode(), is_secure=False, dice=DICE)
    auth.begin(plugin, NONCE)
    *steps, last = packets
    for step in steps:
        auth.receive(step)
    with pytest.raises(WireError):
        auth.receive(last)


PLUGINS = ("mysql_native_password", "sha256_password", "client_ed25519", "parsec", "dialog")
SWITCHES = st.builds(
    lambda plugin, data: b"\xfe" + plugin.encode() + b"\0" + data,
    st.sampled_from(PLUGINS),
    st.binary(max_size=40),
)


@given(payloads=st.lists(st.binary(min_size=1, max_size=30) | SWITCHES, max_size=4))
def test_noise_raises_nothing_but_errors_of_ours(payloads):
    auth = ClientAuth(b"pw", is_secure=False, dice=DICE)
    auth.begin(CACHING_SHA2, NONCE)
    try:
        for payload in payloads:
            auth.receive(payload)
    except (WireError, BackendError):
        pass
