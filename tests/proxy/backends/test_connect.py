import asyncio

import pytest

from streamfrom.proxy.backends import connect as module
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from tests.proxy.backends.pools import opened
from tests.proxy.fake_answers import Error, until
from tests.proxy.fake_server import PASSWORD


async def test_a_wrong_password_and_a_server_that_does_not_listen_are_told_without_a_secret(
    server,
):
    with pytest.raises(BackendError, match="Access denied for user 'app'") as refused:
        await opened(server, user="app", password=Secret("not-the-secret"))
    assert refused.value.wire_code() == (1045, "28000")
    assert "not-the-secret" not in str(refused.value)
    await until(lambda: not server.connections)
    server.stop()
    with pytest.raises(
        BackendUnavailable, match=r"mysql://app@127\.0\.0\.1:\d+/db: "
    ) as failed:
        await opened(server, user="app")
    assert PASSWORD not in str(failed.value)


@pytest.mark.parametrize(
    ("said", "problem"),
    [(b"", "login timed out"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "out of order")],
)
async def test_a_server_that_never_greets_or_talks_nonsense_is_unavailable(
    server, monkeypatch, said, problem
):
    server.greets = False
    if not said:
        monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 0.02)
    opening = asyncio.ensure_future(opened(server))
    if said:
        await until(lambda: server.connections)
        next(iter(server.connections.values())).say(said)
    with pytest.raises(BackendUnavailable, match=problem):
        await opening
    await until(lambda: not server.connections)


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ("session_track_system_variables", Error(1231, "can't be set to the value of 'x'")),
        # MariaDB's answer to an account whose password has expired: in the pool the connection would be of no use for ever.
        (
            "CURRENT_ROLE()",
            Error(1820, "You must SET PASSWORD before executing this statement"),
        ),
    ],
)
async def test_a_server_that_refuses_what_follows_a_login_is_not_used(server, asked, refusal):
    server.on(asked, refusal)
    with pytest.raises(BackendError, match=refusal.message):
        await opened(server)
    await until(lambda: not server.connections)
