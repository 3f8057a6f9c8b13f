import asyncio
import contextlib
import os
from dataclasses import replace

import pytest

from streamfrom.proxy.backends import control_connection as module
from streamfrom.proxy.backends.control_connection import CONNECTIONS_MAX, Control, tls_context
from streamfrom.proxy.config.dsn import SslMode
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from tests.proxy.certificates import issued
from tests.proxy.fake_answers import Error, HangUp, Silence, rows_of, until
from tests.proxy.fake_server import PASSWORD


@pytest.fixture
async def control(server):
    made = Control("ks", "-", server.dsn(user="app"))
    yield made
    await made.close()


async def test_a_server_that_is_down_is_named_without_a_secret(server, control):
    await control.rows("SELECT 1")
    server.stop()
    for _ in range(2):
        with pytest.raises(BackendUnavailable, match=r"mysql://app@127\.0\.0\.1") as failed:
            await control.rows("SELECT 1")
        assert PASSWORD not in str(failed.value)


async def test_no_more_than_a_handful_of_connections_are_opened(server, control):
    gate = asyncio.Event()
    server.on("SLEEP", Silence(gate, rows_of(0)))
    work = [
        asyncio.ensure_future(control.rows("SELECT SLEEP(1)"))
        for _ in range(CONNECTIONS_MAX + 3)
    ]
    await until(lambda: server.controlled.count("SELECT SLEEP(1)") == CONNECTIONS_MAX)
    assert len(server.connections) == CONNECTIONS_MAX
    gate.set()
    await asyncio.gather(*work)


@pytest.mark.parametrize(
    "answer",
    [HangUp(), Error(1053, "Server shutdown in progress"), Error(4031, "idle too long")],
)
async def test_a_server_that_goes_away_is_unavailable_and_asked_anew(server, control, answer):
    await control.rows("SELECT 1")
    server.once("SELECT 2", answer)
    with pytest.raises(BackendUnavailable, match="nothing was executed there"):
        await control.rows("SELECT 2")
    assert await control.rows("SELECT 1")


@pytest.mark.parametrize("warnings", [0, 2])
async def test_mariadb_is_asked_for_definitions_without_waiting_for_a_lock(
    server, control, warnings
):
    server.on("FROM information_schema", replace(rows_of(1), warnings=warnings))
    sql = "SELECT 1 FROM information_schema.columns"
    rows, has_skipped = await control.rows_unlocked(sql, on_mariadb=True)
    assert (len(rows), has_skipped) == (1, bool(warnings))
    assert server.controlled[-1] == f"SET STATEMENT lock_wait_timeout = 0 FOR {sql}"
    server.on("FROM information_schema", rows_of(1))
    assert await control.rows_unlocked(sql, on_mariadb=False) == (rows, False)
    assert server.controlled[-1] == sql


async def test_killing_what_is_gone_already_is_fine_and_any_other_refusal_is_told(
    server, control
):
    await control.kill(4711, query_only=True)
    await control.kill(4711)
    assert server.controlled[-2:] == ["KILL QUERY 4711", "KILL 4711"]
    assert len(server.connections) == 1
    server.on("KILL", Error(1095, "You are not owner"))
    with pytest.raises(BackendError, match=r"^You are not owner$") as refused:
        await control.kill(1)
    assert refused.value.wire_code()[0] == 1095


async def test_a_statement_that_takes_too_long_is_given_up_and_nothing_works_behind_the_end(
    server, control, monkeypatch
):
    server.once("SLEEP", Silence(), Silence())
    running = asyncio.ensure_future(control.rows("SELECT SLEEP(9)"))
    await until(lambda: "SELECT SLEEP(9)" in server.controlled)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not server.connections)
    with monkeypatch.context() as hasty:
        hasty.setattr(module, "STATEMENT_TIMEOUT_S", 0.02)
        with pytest.raises(BackendUnavailable, match="no answer"):
            await control.rows("SELECT SLEEP(9)")
    assert await control.rows("SELECT 1")
    await control.close()
    with pytest.raises(BackendUnavailable, match="shutting down"):
        await control.rows("SELECT 1")
    await until(lambda: not server.connections)


def test_tls_is_as_strict_as_the_mode_says(tmp_path):
    from tests.proxy.fake_server import FakeServer

    def context(mode):
        return tls_context(FakeServer().dsn(ssl_mode=mode))

    assert context(SslMode.DISABLED) is None
    for mode, verifies, names_host in (
        (SslMode.PREFERRED, False, False),
        (SslMode.REQUIRED, False, False),
        (SslMode.VERIFY_CA, True, False),
        (SslMode.VERIFY_IDENTITY, True, True),
    ):
        made = context(mode)
        assert made is not None
        assert (bool(made.verify_mode), made.check_hostname) == (verifies, names_host)
        assert made is context(mode), "authorities are read once"
        assert verifies or not made.cert_store_stats()["x509"]
    path = tmp_path / "ca.pem"
    made = []
    for at, name in enumerate(("one", "two")):
        path.write_bytes(issued(name).pem[0])
        os.utime(path, (at, at))
        made.append(tls_context(FakeServer().dsn(ssl_mode=SslMode.VERIFY_CA, ssl_ca=str(path))))
    subjects = [each.get_ca_certs()[0]["subject"][0][0][1] for each in made if each]
    assert subjects == ["one", "two"], "a file that was replaced is read again"


class Connection:
    """What the driver would return."""

    closed = False

    def close(self):
        self.closed = True


@pytest.mark.parametrize("succeeds", [False, True])
async def test_a_cancellation_that_the_driver_loses_is_not_lost(control, monkeypatch, succeeds):
    made = Connection()

    async def connect(_self):
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        # As `asyncio.wait_for` does before Python 3.12: the cancellation arrives nowhere.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        if not succeeds:
            raise OSError("refused")

    monkeypatch.setattr(Connection, "connect", connect, raising=False)
    monkeypatch.setattr(module, "_SocketlessConnection", lambda **_: made)
    asking = asyncio.ensure_future(control.rows("SELECT 1"))
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert made.closed is succeeds


async def test_a_full_server_has_its_words_though_the_socket_is_gone_at_once(
    server, control, monkeypatch
):
    def gone(*_):
        raise RuntimeError("Transport does not expose socket instance")  # on uvloop

    monkeypatch.setattr("asyncmy.connection.Connection._set_keep_alive", gone)
    monkeypatch.setattr("asyncmy.connection.Connection._set_nodelay", gone)
    server.refusal = Error(1040, "Too many connections")
    with pytest.raises(BackendError, match="takes no more connections"):
        await control.rows("SELECT 1")
