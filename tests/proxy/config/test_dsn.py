"""Addresses of backends."""

import ast
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.config.dsn import SslMode, parse
from streamfrom.proxy.config.toml_values import ConfigError, Surroundings
from tests.cases import cases


def read(text, environ=None, folder="/etc"):
    around = Surroundings(Path(folder), environ or {})
    return parse(text, "here", database="commerce", around=around)


@cases(text=str, user=str, password=str, host=str, port=ast.literal_eval, database=str)
def test_every_part_is_read_and_may_be_left_out_encoded_or_a_variable(
    text, user, password, host, port, database
):
    variables = {"HOST": "db9", "PORT": "99", "DB": "x", "URL": "mysql://a:p%40w@db1/x"}
    dsn = read(text, variables)
    assert (dsn.user, dsn.password.reveal()) == (user, password)
    assert (dsn.host, dsn.port, dsn.database) == (host, port, database)
    assert (dsn.unix_socket, dsn.ssl_ca) == (None, None)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_variable_in_the_password_is_its_bare_value(password):
    other = {"LATIN_1": "\udce9"}  # as a shell hands on a byte that is no UTF-8
    dsn = read("mysql://root:${PW}@db1:3307/shop", {"PW": password, **other})
    assert (dsn.password.reveal(), dsn.host, dsn.port) == (password, "db1", 3307)


def test_a_unix_socket_replaces_host_and_port_and_no_printed_address_has_a_password():
    dsn = read("mysql://root@/x?unix_socket=run/my.sock")
    assert (dsn.unix_socket, dsn.ssl_mode) == ("/etc/run/my.sock", SslMode.DISABLED)
    assert str(dsn) == "mysql://root@/etc/run/my.sock/x"
    dsn = read("mysql://root:hunter2@[::1]:3307")
    assert str(dsn) == "mysql://root@[::1]:3307/commerce"
    assert "hunter2" not in repr(dsn)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_on_loopback_tls_is_off_unless_asked_for_and_elsewhere_taken_where_offered(host):
    assert read(f"mysql://root@{host}").ssl_mode is SslMode.DISABLED
    assert read(f"mysql://root@{host}/?ssl_mode=required").ssl_mode is SslMode.REQUIRED
    for other in ("db1", "10.0.0.1", "localhost.example"):
        assert read(f"mysql://root@{other}").ssl_mode is SslMode.PREFERRED


def test_an_authority_to_trust_is_a_reason_to_verify_and_contradicts_no_tls(tmp_path):
    (tmp_path / "ca.pem").write_text("")
    dsn = read("mysql://root@127.0.0.1?ssl_ca=ca.pem", folder=tmp_path)
    assert (dsn.ssl_mode, dsn.ssl_ca) == (SslMode.VERIFY_CA, str(tmp_path / "ca.pem"))
    with pytest.raises(ConfigError, match="expected no ssl_ca with ssl_mode=disabled"):
        read("mysql://root@db1?ssl_ca=ca.pem&ssl_mode=disabled", folder=tmp_path)


@cases(text=str, expected=str)
def test_a_fault_is_named_without_repeating_the_address(text, expected):
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value).startswith("here")
    assert expected in str(caught.value)
    assert "hunter2" not in str(caught.value)
