"""All faults of a configuration at once."""

import pytest

from streamfrom.proxy.config.file import ConfigError, load
from tests.proxy.config.files import SHARDED


USER = '[[users]]\nname = "app"\npassword = ""\n'


@pytest.fixture
def faults(tmp_path):
    (tmp_path / "vschema.json").write_text('{"sharded": true}')

    def faults(text):
        path = tmp_path / "streamfrom.toml"
        path.write_text(text)
        with pytest.raises(ConfigError) as caught:
            load(path, {})
        return [str(each) for each in (caught.value, *caught.value.others)]

    return faults


def test_every_unknown_key_and_every_wrong_type_is_told(faults):
    text = f"""
    extra = 1
    [server]
    listen = 5
    max_conections = 7
    connect_timeout = "5s"
    {SHARDED}
    pool_size = "many"
    {USER}
    max_connections = 0
    rool = 1
    """
    assert faults(text) == [
        'server.listen: expected an address such as "127.0.0.1:15306" or "[::]:15306", got 5',
        'server.connect_timeout: expected a number of seconds > 0, got "5s"',
        "server.max_conections: unknown key; did you mean max_connections?",
        'keyspaces.commerce.shards[1].pool_size: expected an integer ≥ 1, got "many"'
        ' (shard "80-")',
        'users[0].max_connections: expected an integer ≥ 1, got 0 (user "app")',
        'users[0].rool: unknown key; did you mean role? (user "app")',
        "extra: unknown key; expected one of admin, fleet, grpc, keyspaces, log, server, users",
    ]


def test_what_only_follows_from_a_fault_is_not_told(faults):
    text = SHARDED.replace(":3307", ":0") + USER
    assert faults(text) == [
        "keyspaces.commerce.shards[0].primary: expected a port from 1 to 65535, got 0"
        ' (shard "-80")'
    ]
    assert len(faults(SHARDED.replace("vschema.json", "none.json"))) == 1
    assert len(faults(SHARDED + '[[users]]\nname = "a"\npassword_hash = "x"')) == 1
    assert len(faults(SHARDED + '[server.tls]\ncert = "none.pem"')) == 1
