"""The configuration file: what it gives, and every fault with its key."""

from collections import ChainMap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamfrom.proxy.config.file import (
    ConfigError,
    LogFormat,
    LogLevel,
    LogSettings,
    Role,
    Secret,
    SessionAccount,
    TlsSettings,
    TransactionMode,
    User,
    load,
)
from tests.cases import cases
from tests.proxy.config.files import SHARDED, UNSHARDED


OWN = SessionAccount.OWN
SHA2 = "$A$005$" + "s" * 20 + "d" * 43
NATIVE = "*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29"


@pytest.mark.parametrize(("name", "port"), [("grpc", 15991), ("admin", 15380)])
def test_other_ports_listen_only_where_they_are_asked_for(read, name, port):
    assert getattr(read(UNSHARDED), name) is None
    assert getattr(read(f"[{name}]\n{UNSHARDED}"), name) == ("127.0.0.1", port)
    assert getattr(read(f'[{name}]\nlisten = "[::1]:0"\n{UNSHARDED}'), name) == ("::1", 0)


def test_every_server_key_is_taken(read, folder):
    keys: dict[str, dict[str, Any]] = {
        'listen = "[::1]:3306"': {"host": "::1", "port": 3306},
        'unix_socket = "proxy.sock"': {"unix_socket": str(folder / "proxy.sock")},
        'unix_socket_mode = "0660"': {"unix_socket_mode": 0o660},
        "max_connections = 5": {"max_connections": 5},
        "max_connections_per_address = 4": {"max_connections_per_address": 4},
        "max_logins_per_address = 2": {"max_logins_per_address": 2},
        "connect_timeout = 1.5": {"connect_timeout_s": 1.5},
        "max_allowed_packet = 1048576": {"max_allowed_packet_bytes": 1 << 20},
        "max_statement_tokens = 5000": {"max_statement_tokens": 5000},
        "connection_memory = 2097152": {"connection_memory_bytes": 2 << 20},
        "user_memory = 3145728": {"user_memory_bytes": 3 << 20},
        "merge_memory = 2048": {"merge_memory_bytes": 2048},
        "failover_buffer = 0": {"failover_buffer_s": 0},
        "stream_grace = 1": {"stream_grace_s": 1},
        "shutdown_grace = 2": {"shutdown_grace_s": 2},
        "schema_reload = 3": {"schema_reload_s": 3},
        "pool_timeout = 4": {"pool_timeout_s": 4},
        'transaction_mode = "single"': {"transaction_mode": TransactionMode.SINGLE},
        "recovery_grace = 6": {"recovery_grace_s": 6},
        "statement_timeout = 7.5": {"statement_timeout_s": 7.5},
        "idle_timeout = 8": {"idle_timeout_s": 8},
        "auth_backoff = 0": {"auth_backoff_s": 0},
    }
    tls = TlsSettings(str(folder / "server.pem"), str(folder / "server.key"), require=True)
    lines = [*keys, '[server.tls]\ncert = "server.pem"\nkey = "server.key"\nrequire = true']
    found = read("[server]\n" + "\n".join(lines) + UNSHARDED).server
    assert found == replace(read(UNSHARDED).server, tls=tls, **ChainMap(*keys.values()))


def test_a_connection_may_hold_two_packets_of_whatever_size_and_a_user_four_connections(read):
    server = read("[server]\nmax_allowed_packet = 1073741824\n" + UNSHARDED).server
    assert server.connection_memory_bytes == 2 << 30
    assert server.user_memory_bytes == 8 << 30


@cases(lines=str, says=str)
def test_a_budget_that_not_even_one_packet_fits_in_is_refused(read, lines, says):
    with pytest.raises(ConfigError, match=says):
        read(f"[server]\n{lines}\n" + UNSHARDED)


def test_users_have_a_password_in_one_of_three_forms(read):
    salted = "$A$00A$" + "${\x01\x7f" + "s" * 16 + "d" * 43
    in_hex = "0x" + salted.encode().hex()
    users = read(
        f"""
        users = [
            {{name = "plain", password = "x${{PW}}"}},
            {{name = "env", password_env = "PW", role = "admin"}},
            {{name = "open", password = "", max_connections = 3}},
            {{name = "native", account = "shared", password_hash = "{NATIVE}"}},
            {{name = "sha2", account = "shared", password_hash = "{SHA2}"}},
            {{name = "hex", account = "shared", password_hash = "{in_hex}"}},
            {{name = "variable", account = "shared", password_hash = "${{HASH}}"}},
        ]
        {UNSHARDED}
        """,
        {"PW": "${secret}", "HASH": salted},
    ).users
    assert users == (
        User("plain", Secret("x${secret}"), None, Role.USER, account=OWN),
        User("env", Secret("${secret}"), None, Role.ADMIN, account=OWN),
        User("open", Secret(""), None, Role.USER, 3, account=OWN),
        User("native", None, Secret(NATIVE), Role.USER),
        User("sha2", None, Secret(SHA2), Role.USER),
        User("hex", None, Secret(in_hex), Role.USER),
        User("variable", None, Secret(salted), Role.USER),
    )


@cases(toml=str, expected=str)
def test_a_fault_names_its_key_and_what_was_expected_but_no_secret(refused, toml, expected):
    assert expected in refused(f"{toml}\n{UNSHARDED}")[0]


def test_there_is_a_keyspace(refused):
    assert "keyspaces: missing; expected at least one [keyspaces.<name>]" in refused("")[0]


def test_nothing_said_of_the_log_is_info_in_the_form_that_fits(read):
    for text in (UNSHARDED, f"[log]\n{UNSHARDED}"):
        assert read(text).log == LogSettings(LogLevel.INFO, LogFormat.AUTO)


def test_a_missing_file_and_other_encodings_than_utf_8_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"^cannot read /.*nope\.toml: No such file"):
        load(tmp_path / "nope.toml", {})
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbf" + UNSHARDED.encode())
    assert load(path, {}).keyspaces
    path.write_bytes(b'[server]\nlisten = "\xff"')
    with pytest.raises(ConfigError, match=r"^expected UTF-8, got another byte at 19$"):
        load(path, {})


def test_the_printed_tree_has_no_secret(read):
    config = read(
        f"[[users]]\nname = 'a'\npassword = 'hunter2'{UNSHARDED}".replace(
            "root@", "root:hunter2@"
        )
    )
    assert "hunter2" not in repr(config)
    assert config.users[0].password == Secret("hunter2")


def test_compose_gives_the_example_its_variables():
    root = Path(__file__).parents[3]
    names = ("APP_PASSWORD", "DB_PASSWORD", "OPS_PASSWORD", "REPORTS_PASSWORD")
    load(root / "examples" / "streamfrom.toml", dict.fromkeys(names, "x"))
    proxy = (root / "compose.yaml").read_text().partition("\n  proxy:\n")[2]
    assert all(f"      {name}: " in proxy for name in names)


# All faults of a configuration at once.
USER = '[[users]]\nname = "app"\npassword = ""\n'


def test_every_unknown_key_and_every_wrong_type_is_told(refused):
    text = f"""
    extra = 1
    [server]
    listen = 5
    max_conections = 7
    {SHARDED}
    pool_size = "many"
    {USER}
    rool = 1
    """
    assert refused(text) == [
        'server.listen: expected an address such as "127.0.0.1:15306" or "[::]:15306", got 5',
        "server.max_conections: unknown key; did you mean max_connections?",
        'keyspaces.commerce.shards[1].pool_size: expected an integer ≥ 1, got "many"'
        ' (shard "80-")',
        'users[0].rool: unknown key; did you mean role? (user "app")',
        "extra: unknown key; expected one of admin, fleet, grpc, keyspaces, log, server, users",
    ]


def test_what_only_follows_from_a_fault_is_not_told(refused):
    text = SHARDED.replace(":3307", ":0") + USER
    assert refused(text) == [
        "keyspaces.commerce.shards[0].primary: expected a port from 1 to 65535, got 0"
        ' (shard "-80")'
    ]
    assert len(refused(SHARDED.replace("vschema.json", "none.json"))) == 1
    assert len(refused(SHARDED + '[[users]]\nname = "a"\npassword_hash = "x"')) == 1
    assert len(refused(SHARDED + '[server.tls]\ncert = "none.pem"')) == 1
