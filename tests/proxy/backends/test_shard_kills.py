import pytest
import structlog

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT, Account
from streamfrom.proxy.config.toml_values import Secret
from tests.proxy.fake_answers import Error
from tests.proxy.fake_server import PASSWORD


APP = Account("app", Secret(PASSWORD))


async def test_the_shards_account_kills_its_own_by_the_control_connection(server, shard):
    backend = await shard.open_backend(SHARDS_ACCOUNT, "db", 0)
    await shard.kills.kill(backend, query_only=True)
    assert server.controlled[-1] == f"KILL QUERY {backend.thread_id}"


async def test_another_account_kills_on_a_connection_of_its_own_which_is_kept(server, shard):
    backend = await shard.open_backend(APP, "db", 0)
    for _ in range(3):
        await shard.kills.kill(backend, query_only=True)
    await shard.kills.kill(backend)
    killer = server.relays[-1]
    assert killer.user == "app"
    assert killer.heard[1:] == [f"KILL QUERY {backend.thread_id}"] * 3 + [
        f"KILL {backend.thread_id}"
    ]
    assert not any("KILL" in text for text in server.controlled)
    # The next account's takes its place.
    await shard.kills.kill(await shard.open_backend(Account("root", Secret("")), "db", 0))
    assert [relay.user for relay in server.relays] == ["root"]


@pytest.mark.parametrize("code", [1095, 1226])
async def test_what_cannot_be_killed_is_closed_and_logged(server, shard, code):
    backend = await shard.open_backend(APP, "db", 0)
    if code == 1095:
        server.on("KILL", Error(1095, "You are not owner"))
    else:
        server.refusal = Error(
            1226, "User 'app' has exceeded the 'max_user_connections' resource"
        )
    with structlog.testing.capture_logs() as logs:
        await shard.kills.kill(backend, query_only=True)
    assert backend.is_closed
    told = logs[-1]
    assert told["event"] == "statement could not be killed: the server may continue it"
    assert told["user"] == "app"
    assert PASSWORD not in str(logs)
