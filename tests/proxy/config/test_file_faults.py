"""All faults of a configuration at once."""

from tests.proxy.config.files import SHARDED


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
