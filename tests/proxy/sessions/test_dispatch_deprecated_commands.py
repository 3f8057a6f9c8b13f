from streamfrom.proxy.wire.framing import frame


async def test_a_refresh_goes_to_the_server_of_one_shard(server, proxy):
    client = await proxy.client()
    assert (await client.command(b"\x07\x04")).code == 1047  # as this server says
    assert server.heard[-1] == "COMMAND 7"
    assert (await client.command(b"\x02commerce")).ok is not None
    assert (await client.command(b"\x07\x04")).code == 1235


async def test_columns_of_a_table_come_from_the_server(server, proxy):
    client = await proxy.client()
    client.write(frame(b"\x04t\0", 0))
    assert (await client.packet(1)).startswith(b"\x03def")
    assert (await client.packet())[0] == 0xFE
    assert server.heard[-1] == "FIELD_LIST t"
    nowhere = await proxy.client(None)
    assert (await nowhere.command(b"\x04t\0")).code == 1046
