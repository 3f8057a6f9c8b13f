"""Addresses of backends."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.config.dsn import Dsn, SslMode, parse
from streamfrom.proxy.config.toml_values import ConfigError, Secret, Surroundings
from tests.cases import cases


def read(text, environ=None, folder="/etc"):
    around = Surroundings(Path(folder), environ or {})
    return parse(text, "here", database="commerce", around=around)


def test_every_part_is_read():
    assert read("mysql://app:secret@db1:3307/shop?ssl_mode=REQUIRED") == Dsn(
        host="db1",
        port=3307,
        unix_socket=None,
        user="app",
        password=Secret("secret"),
        database="shop",
        ssl_mode=SslMode.REQUIRED,
        ssl_ca=None,
    )


def test_the_shortest_address_has_mysqls_port_no_password_and_the_keyspaces_database():
    dsn = read("mysql://root@db1")
    assert (dsn.port, dsn.password.reveal(), dsn.database) == (3306, "", "commerce")


@pytest.mark.parametrize("path", ["", "/"])
def test_an_empty_path_is_the_keyspaces_database(path):
    assert read(f"mysql://root@db1{path}").database == "commerce"


def test_user_password_and_database_are_url_decoded():
    dsn = read("mysql://a%40b:p%2Fw%3A%25@db1/my%20db")
    assert (dsn.user, dsn.password.reveal(), dsn.database) == ("a@b", "p/w:%", "my db")


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_variable_in_the_password_is_its_bare_value(password):
    dsn = read("mysql://root:${PW}@db1:3307/shop", {"PW": password})
    assert (dsn.password.reveal(), dsn.host, dsn.port) == (password, "db1", 3307)


def test_variables_may_stand_for_the_place_too():
    dsn = read("mysql://root@${HOST}:${PORT}/${DB}", {"HOST": "db9", "PORT": "99", "DB": "x"})
    assert (dsn.host, dsn.port, dsn.database) == ("db9", 99, "x")


def test_one_variable_may_be_the_whole_address():
    dsn = read("${URL}", {"URL": "mysql://a:p%40w@db1/x"})
    assert (dsn.user, dsn.password.reveal(), dsn.host) == ("a", "p@w", "db1")


def test_an_ipv6_host_is_read_and_printed_in_brackets():
    dsn = read("mysql://root@[::1]:3307")
    assert dsn.host == "::1"
    assert str(dsn) == "mysql://root@[::1]:3307/commerce"


def test_printed_it_has_no_password():
    dsn = read("mysql://root:hunter2@db1:3307/x")
    assert str(dsn) == "mysql://root@db1:3307/x"
    assert "hunter2" not in repr(dsn)


def test_a_unix_socket_replaces_host_and_port_and_starts_at_the_files_folder():
    dsn = read("mysql://root@/x?unix_socket=run/my.sock")
    assert (dsn.unix_socket, dsn.ssl_mode) == ("/etc/run/my.sock", SslMode.DISABLED)
    assert str(dsn) == "mysql://root@/etc/run/my.sock/x"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_on_loopback_tls_is_off_unless_asked_for(host):
    assert read(f"mysql://root@{host}").ssl_mode is SslMode.DISABLED
    assert read(f"mysql://root@{host}/?ssl_mode=required").ssl_mode is SslMode.REQUIRED


@pytest.mark.parametrize("host", ["db1", "10.0.0.1", "localhost.example"])
def test_elsewhere_tls_is_taken_where_offered(host):
    assert read(f"mysql://root@{host}").ssl_mode is SslMode.PREFERRED


def test_an_authority_to_trust_is_a_reason_to_verify(tmp_path):
    (tmp_path / "ca.pem").write_text("")
    dsn = read("mysql://root@127.0.0.1?ssl_ca=ca.pem", folder=tmp_path)
    assert (dsn.ssl_mode, dsn.ssl_ca) == (SslMode.VERIFY_CA, str(tmp_path / "ca.pem"))


@cases(text=str, expected=str)
def test_a_fault_is_named_without_repeating_the_address(text, expected):
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value).startswith("here")
    assert expected in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_authority_without_tls_is_a_contradiction(tmp_path):
    (tmp_path / "ca.pem").write_text("")
    with pytest.raises(ConfigError, match="expected no ssl_ca with ssl_mode=disabled"):
        read("mysql://root@db1?ssl_ca=ca.pem&ssl_mode=disabled", folder=tmp_path)
