import ast
import contextlib

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.constants import (
    CACHING_SHA2,
    MARIADB_METADATA,
    NATIVE_PASSWORD,
    PROXY_OFFER,
    Capability,
)
from streamfrom.proxy.wire.login.handshake import (
    Greeting,
    LoginRequest,
    decode_auth_switch,
    decode_change_user,
    decode_greeting,
    decode_login,
    encode_auth_more_data,
    encode_auth_switch,
    encode_login,
    extends_metadata,
    offer_as,
    plugin_to_greet,
    version_to_greet,
)
from tests.cases import cases
from tests.proxy.wire.peers import encode_change_user


NONCE = bytes(range(1, 21))
REQUIRED = int(Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION)
OPTIONAL = [
    Capability.CONNECT_WITH_DB,
    Capability.PLUGIN_AUTH,
    Capability.PLUGIN_AUTH_LENENC,
    Capability.CONNECT_ATTRS,
    Capability.DEPRECATE_EOF,
]

names = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)


@st.composite
def logins(draw):
    flags = REQUIRED | int(sum(draw(st.sets(st.sampled_from(OPTIONAL)))))
    return LoginRequest(
        user=draw(names),
        response=draw(st.binary(max_size=200)),
        database=(draw(names) or None) if flags & Capability.CONNECT_WITH_DB else None,
        capabilities=flags,
        charset=draw(st.integers(0, 255)),
        packet_bytes_max=draw(st.integers(0, (1 << 32) - 1)),
        plugin=draw(names) if flags & Capability.PLUGIN_AUTH else None,
        attributes=draw(st.dictionaries(names, names, max_size=4))
        if flags & Capability.CONNECT_ATTRS
        else {},
    )


@given(
    version=names,
    connection_id=st.integers(0, (1 << 32) - 1),
    capabilities=st.integers(0, (1 << 32) - 1).map(
        lambda flags: flags | Capability.PLUGIN_AUTH
    ),
    charset=st.integers(0, 255),
    status=st.integers(0, 0xFFFF),
)
def test_a_greeting_comes_back(version, connection_id, capabilities, charset, status):
    greeting = Greeting(version, connection_id, NONCE, capabilities, charset, status)
    assert decode_greeting(greeting.encode()) == greeting


def test_a_real_greeting_is_read():
    # MariaDB 10.11, which tells its extended capabilities in the filler.
    payload = (
        b"\n5.5.5-10.11.19-MariaDB\x00\x05\x00\x00\x00abcdefgh\x00\xfe\xf7\x2d\x02\x00\xff\x81"
        b"\x15\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00ijklmnopqrst\x00mysql_native_password\x00"
    )
    greeting = decode_greeting(payload)
    assert greeting.server_version == "5.5.5-10.11.19-MariaDB"
    assert greeting.nonce == b"abcdefghijklmnopqrst"
    assert greeting.plugin == NATIVE_PASSWORD
    assert greeting.capabilities == 0x1D_81FF_F7FE


@pytest.mark.parametrize("payload", [b"\x09old\0", b"\n5.1\0\1\0\0\0abcdefgh\0\xff\xf7"])
def test_a_server_and_a_client_of_long_ago_are_refused(payload):
    with pytest.raises(WireError):
        decode_greeting(payload)
    with pytest.raises(WireError):
        decode_login(b"\x05\x00\x00\x00\x01root\0")


@given(login=logins())
def test_a_login_comes_back_whatever_its_flags(login):
    assert decode_login(encode_login(login)) == login


@given(login=logins())
def test_a_login_without_modern_flags_ends_its_proof_with_nul(login):
    flags = int(Capability.PROTOCOL_41)
    old = LoginRequest(
        login.user, login.response.replace(b"\0", b""), None, flags, login.charset
    )
    assert decode_login(encode_login(old)) == old


@given(login=logins())
def test_a_change_of_user_comes_back(login):
    change = LoginRequest(
        login.user,
        login.response,
        login.database,
        login.capabilities,
        login.charset,
        plugin=login.plugin,
        attributes=login.attributes,
    )
    assert decode_change_user(encode_change_user(change), change.capabilities) == change


def test_a_change_of_user_may_end_after_the_database_and_a_switch_of_plugin_comes_back():
    change = decode_change_user(b"\x11root\0\x00shop\0", REQUIRED)
    assert (change.user, change.response, change.database) == ("root", b"", "shop")
    assert change.plugin is None
    switch = encode_auth_switch(CACHING_SHA2, NONCE)
    assert decode_auth_switch(switch) == (CACHING_SHA2, NONCE + b"\0")
    assert encode_auth_more_data(b"\x03") == b"\x01\x03"
    with pytest.raises(WireError):
        decode_auth_switch(b"\xfe")


def test_each_family_has_its_own_extensions():
    offer = offer_as("5.5.5-10.11.19-MariaDB", PROXY_OFFER)
    # MariaDB's drivers send batches as rows: no bulk execution.
    assert offer == PROXY_OFFER & ~Capability.LONG_PASSWORD
    offer |= MARIADB_METADATA
    greeting = Greeting("5.5.5-10.11.19-MariaDB", 1, NONCE, offer)
    assert decode_greeting(greeting.encode()).capabilities == offer
    # Who says LONG_PASSWORD has none of them.
    for flags, read in ((offer, offer), (PROXY_OFFER | MARIADB_METADATA, PROXY_OFFER)):
        login = LoginRequest("root", b"", None, int(flags), 45, plugin=NATIVE_PASSWORD)
        assert decode_login(encode_login(login)).capabilities == read
    assert offer_as("8.4.3", PROXY_OFFER) == PROXY_OFFER


@cases(version=str, does=ast.literal_eval)
def test_extended_metadata_is_known_by_the_version(version, does):
    assert extends_metadata(version) is does
    assert not offer_as(version, PROXY_OFFER) & MARIADB_METADATA


def test_a_missing_database_or_plugin_and_bytes_that_are_no_text_are_no_fault():
    flags = REQUIRED | Capability.CONNECT_WITH_DB | Capability.PLUGIN_AUTH
    login = decode_login(
        flags.to_bytes(4, "little") + bytes(4) + b"\x2d" + bytes(23) + b"\xff\0\x00"
    )
    assert (login.user, login.database, login.plugin) == ("\ufffd", None, None)


@given(payload=st.binary(max_size=120), flags=st.integers(0, (1 << 32) - 1))
def test_noise_raises_nothing_but_wire_errors(payload, flags):
    for read in (
        decode_greeting,
        decode_login,
        lambda data: decode_login(flags.to_bytes(4, "little") + data),
        lambda data: decode_change_user(b"\x11" + data, flags),
        lambda data: decode_auth_switch(b"\xfe" + data),
    ):
        with contextlib.suppress(WireError):
            read(payload)


def test_the_greeting_names_what_a_server_of_that_version_would():
    assert plugin_to_greet("5.5.5-10.11.6-MariaDB") == NATIVE_PASSWORD
    assert plugin_to_greet("11.4.2-MariaDB") == CACHING_SHA2
    assert plugin_to_greet("8.0.36") == CACHING_SHA2


def test_the_level_of_zstd_comes_last_and_may_be_missing():
    flags = int(PROXY_OFFER | Capability.ZSTD_COMPRESSION)
    login = LoginRequest("root", b"", None, flags, 45, plugin=CACHING_SHA2, zstd_level=7)
    payload = encode_login(login)
    assert payload[-1] == 7
    assert decode_login(payload) == login
    assert decode_login(payload[:-1]).zstd_level == 3


@cases(version=str, greeting=str)
def test_a_greeting_is_what_clients_of_the_family_look_for(version, greeting):
    assert version_to_greet(version) == greeting
