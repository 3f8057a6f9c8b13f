import dataclasses

from tests.proxy.rigs import running_proxy


async def test_a_session_keeps_the_limits_of_its_login(server):
    async with running_proxy(server) as proxy:
        services = proxy.app.services
        before = await proxy.client()
        services.config = dataclasses.replace(services.config, unix_socket="/tmp/other.sock")
        after = await proxy.client()
        for client, socket in ((before, "''"), (after, "'/tmp/other.sock'")):
            await client.query("SELECT @@socket")
            assert server.heard[-1] == (
                f"SELECT IF(TRUE, _utf8mb4{socket}, @@socket) AS `@@socket`"
            )
