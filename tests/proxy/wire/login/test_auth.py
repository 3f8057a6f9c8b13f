import itertools
import re
from hashlib import sha256

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import AccessDenied
from streamfrom.proxy.passwords.scramble import (
    certificate_signature,
    native_proof,
    sha2_proof,
    stored_native,
)
from streamfrom.proxy.passwords.verifier import ROUNDS_AT_ONCE
from streamfrom.proxy.wire.constants import CACHING_SHA2, NATIVE_PASSWORD, PROXY_OFFER
from streamfrom.proxy.wire.login.auth import (
    PASSWORD_BYTES_MAX,
    Authenticated,
    Authenticator,
    Deferred,
    ServerAuth,
    nonce_from,
)
from streamfrom.proxy.wire.login.client_auth import ClientAuth
from streamfrom.proxy.wire.login.handshake import LoginRequest, encode_auth_switch
from tests.cases import in_turn
from tests.proxy.wire.accounts import (
    DICE,
    KEY,
    NONCE,
    PASSWORD,
    PromptAuth,
    authenticator,
    in_one_go,
    in_pieces,
    nonce_source,
)


FAST_OK = b"\x01\x03"
FULL_NEEDED = b"\x01\x04"


def request(user, plugin=CACHING_SHA2, response=None, password=PASSWORD):
    if response is None:
        proof_of = sha2_proof if plugin == CACHING_SHA2 else native_proof
        response = proof_of(password.encode(), NONCE)
    return LoginRequest(user, response, None, PROXY_OFFER, 45, plugin=plugin)


def attempt(auth, login, **options):
    return PromptAuth(auth, login, host="h", nonce=NONCE, **options)


def converse(auth, user, password, *, is_secure, plugin=CACHING_SHA2, greeted=CACHING_SHA2):
    """Play a whole login with our own client; return the Authenticated and every packet sent."""
    client = ClientAuth(password.encode(), is_secure=is_secure, dice=DICE)
    named, proof = client.begin(plugin, NONCE)
    login = LoginRequest(user, proof, None, PROXY_OFFER, 45, plugin=named)
    server = attempt(auth, login, is_secure=is_secure, greeted_plugin=greeted)
    sent: list[bytes] = []
    step = server.begin()
    for _ in range(10):
        if isinstance(step, Authenticated):
            return step, [*sent, step.ahead] if step.ahead else sent
        sent.append(step)
        answer = client.receive(step)
        assert answer is not None, "both sides wait"
        step = server.receive(answer)
    raise AssertionError("the login does not end")


@pytest.mark.parametrize("kind", ["clear", "native", "crypt"])
@pytest.mark.parametrize("plugin", [CACHING_SHA2, NATIVE_PASSWORD])
@pytest.mark.parametrize("is_secure", [True, False])
def test_every_kind_of_account_lets_the_right_password_in(kind, plugin, is_secure):
    auth = authenticator(kind, rsa_key=KEY)
    accepted, _ = converse(auth, kind, PASSWORD, is_secure=is_secure, plugin=plugin)
    assert accepted == Authenticated(kind)


@in_turn
@pytest.mark.parametrize(
    ("kind", "password"),
    [*itertools.product(["clear", "native", "crypt"], ["wrong", ""]), ("empty", "wrong")],
)
@pytest.mark.parametrize("plugin", [CACHING_SHA2, NATIVE_PASSWORD])
@pytest.mark.parametrize("is_secure", [True, False])
def test_no_kind_of_account_lets_another_password_in(kind, plugin, is_secure, password):
    auth = authenticator(kind, rsa_key=KEY)
    with pytest.raises(AccessDenied) as caught:
        converse(auth, kind, password, is_secure=is_secure, plugin=plugin)
    using = "YES" if password else "NO"
    expected = f"Access denied for user '{kind}'@'h' (using password: {using})"
    assert str(caught.value) == expected


def test_a_native_account_switches_the_client_over_with_a_fresh_nonce():
    server = attempt(authenticator("native"), request("native"))
    switch = server.begin()
    assert server.nonce != NONCE
    assert isinstance(switch, bytes)
    assert switch == encode_auth_switch(NATIVE_PASSWORD, server.nonce)
    step = server.receive(native_proof(PASSWORD.encode(), server.nonce))
    assert step == Authenticated("native")
    # libmysql with another default plugin than the greeting's sends no proof at first.
    switch = attempt(authenticator("clear"), request("clear", NATIVE_PASSWORD, b"")).begin()
    assert switch.startswith(b"\xfe" + NATIVE_PASSWORD.encode())


@pytest.mark.parametrize("user", ["clear", "nobody"])
@pytest.mark.parametrize("asked", ["dummy_fallback_auth", "", "sha256_password"])
@pytest.mark.parametrize("greeted", [CACHING_SHA2, NATIVE_PASSWORD])
def test_who_lacks_the_plugin_it_was_told_to_use_is_asked_for_the_greetings(
    user, asked, greeted
):
    """As its server alone does: libmariadb before MariaDB may know no other."""
    auth = authenticator("clear")
    login = request(user, plugin=asked, response=b"")
    sent = attempt(auth, login, greeted_plugin=greeted).begin()
    assert isinstance(sent, bytes)
    assert sent.startswith(b"\xfe" + greeted.encode() + b"\0")


def test_a_crypt_hash_needs_the_password_once_over_tls_or_under_the_servers_key():
    auth = authenticator("crypt")
    _, sent = converse(auth, "crypt", PASSWORD, is_secure=True)
    assert sent == [FULL_NEEDED]
    _, sent = converse(auth, "crypt", PASSWORD, is_secure=False)
    assert sent == [FAST_OK]
    auth = authenticator("crypt", rsa_key=KEY)
    _, sent = converse(auth, "crypt", PASSWORD, is_secure=False)
    assert sent == [FULL_NEEDED, b"\x01" + KEY.public_pem()]
    with pytest.raises(AccessDenied):
        attempt(authenticator("crypt"), request("crypt")).begin()


def test_sqlx_of_rust_gets_no_word_before_the_ok():
    once = sha256(PASSWORD.encode()).digest()
    mask = sha256(NONCE + sha256(once).digest()).digest()
    proof = bytes(a ^ b for a, b in zip(once, mask, strict=True))
    server = attempt(authenticator("clear"), request("clear", response=proof))
    assert server.begin() == Authenticated("clear")


def test_r2dbc_of_mariadb_proves_all_of_the_nonce_but_its_last_byte():
    login = request("clear", response=sha2_proof(PASSWORD.encode(), NONCE[:-1]))
    server = attempt(authenticator("clear"), login)
    assert server.begin() == Authenticated("clear", ahead=FAST_OK)


@pytest.mark.parametrize(
    ("is_secure", "payloads"),
    [
        (False, [PASSWORD.encode() + b"\0", b"", b"\x02", b"x" * 128, b"x" * 256]),
        (True, [PASSWORD.encode(), b"", b"\x02", b"x" * (PASSWORD_BYTES_MAX + 1) + b"\0"]),
    ],
)
def test_a_malformed_password_or_one_in_the_clear_without_tls_is_refused(is_secure, payloads):
    for payload in payloads:
        auth = authenticator("crypt", rsa_key=None if is_secure else KEY)
        server = attempt(auth, request("crypt"), is_secure=is_secure)
        server.begin()
        if payload == b"\x02" and not is_secure:
            server.receive(payload)  # the key is given once
        with pytest.raises(AccessDenied):
            server.receive(payload)


def trace(auth, user, plugin, response, answers, **options):
    """Everything a client sees of a login that fails."""
    server = attempt(auth, request(user, plugin, response), **options)
    seen = []
    try:
        step = server.begin()
        for answer in answers:
            # Plugin and kind of packet count; nonces differ anyway.
            seen.append(re.split(b"\0", step)[0])
            step = server.receive(answer)
    except AccessDenied as error:
        seen.append(str(error).replace(user, "USER"))
    return seen


@given(
    kind=st.sampled_from(["clear", "native", "crypt"]),
    plugin=st.sampled_from([CACHING_SHA2, NATIVE_PASSWORD, "sha256_password", None]),
    response=st.sampled_from([b"", b"\0", b"x" * 20, b"y" * 32]),
    answers=st.lists(
        st.sampled_from([b"", b"\x02", b"x" * 20, b"y" * 32, b"guess\0"]), max_size=4
    ),
    is_secure=st.booleans(),
    has_key=st.booleans(),
)
def test_an_unknown_user_sees_what_a_wrong_password_sees(
    kind, plugin, response, answers, is_secure, has_key
):
    auth = authenticator(kind, rsa_key=KEY if has_key else None)
    known = trace(auth, kind, plugin, response, answers, is_secure=is_secure)
    unknown = trace(auth, "nobody", plugin, response, answers, is_secure=is_secure)
    assert known == unknown


def test_a_decoy_never_opens():
    auth = Authenticator({}, nonce_source(), b"a secret")
    decoy, is_known = auth.verifier_of("nobody")
    assert not is_known
    assert auth.verifier_of("nobody")[0] is decoy, "asking twice tells nothing new"
    assert not decoy.is_empty
    with pytest.raises(AccessDenied):
        attempt(auth, request("nobody", response=b"")).begin()


def test_a_mariadb_client_gets_the_signature_of_the_certificate():
    auth = authenticator("clear", "empty", certificate_sha256=b"f" * 32)
    accepted = attempt(auth, request("clear", NATIVE_PASSWORD), is_tls=True).begin()
    stored = stored_native(PASSWORD.encode())
    assert accepted.info == certificate_signature(stored, NONCE, b"f" * 32)
    accepted = attempt(auth, request("clear", NATIVE_PASSWORD)).begin()
    assert accepted.info == b"", "without TLS there is no certificate"
    accepted = attempt(auth, request("clear"), is_tls=True).begin()
    assert accepted.info == b"", "caching_sha2 signs nothing"


@given(dice=st.binary(min_size=20, max_size=20))
def test_a_nonce_is_text_without_nul_and_takes_enough_dice(dice):
    nonce = nonce_from(dice)
    assert len(nonce) == 20
    assert all(0x01 <= byte <= 0x7F for byte in nonce)
    with pytest.raises(ValueError, match="20"):
        nonce_from(dice[1:])


@pytest.mark.parametrize("user", ["crypt", "nobody"])
@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_a_crypt_hash_is_costly_and_made_in_pieces(user, password):
    auth = authenticator("crypt")
    login = request(user, password=password)
    server = ServerAuth(auth, login, host="h", nonce=NONCE, is_secure=True)
    assert server.begin() == Deferred(is_costly=False)
    assert in_pieces(server.judge()) == (FULL_NEEDED, 0)
    assert server.receive(password.encode() + b"\0") == Deferred(is_costly=True)
    if (user, password) == ("crypt", PASSWORD):
        step, pieces = in_pieces(server.judge())
        assert step == Authenticated("crypt")
        assert pieces == 1000 // ROUNDS_AT_ONCE
    else:
        with pytest.raises(AccessDenied):
            in_one_go(server.judge())
