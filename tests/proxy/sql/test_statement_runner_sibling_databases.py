import pytest

from streamfrom.proxy.wire.constants import FieldType
from tests.proxy.fake_answers import Rows
from tests.proxy.rigs import running_proxy


def has_databases(server, *names):
    rows = tuple((name.encode(),) for name in names)
    text = (FieldType.VAR_STRING,)
    server.on("information_schema.schemata", Rows(("schema_name",), rows, types=text))


@pytest.fixture
async def plain(server):
    has_databases(server, "db", "beside")
    async with running_proxy(server) as made:
        yield made


async def test_from_there_the_schema_of_the_proxy_can_be_used(server, plain):
    client = await plain.client("beside")
    for name in ("streamfrom", "streamfrom", "information_schema", "streamfrom", "plain"):
        assert (await client.query(f"USE {name}")).ok is not None
    assert (await client.query("SELECT 1")).values == [b"1"]
    assert server.relays[0].database == "db"


@pytest.mark.parametrize("name", ["Beside", "nowhere", "beside2", ""])
async def test_what_no_server_has_is_unknown(plain, name):
    client = await plain.client("plain")
    assert (await client.query(f"USE `{name}`" if name else "USE ``")).code in (1049, 1064)
    assert (await client.command(b"\x02" + name.encode())).code == 1049
    assert (await client.query("SELECT 1")).values == [b"1"]
