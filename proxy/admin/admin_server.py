"""`/healthz`, `/readyz`, `/metrics` and `/api`, by aiohttp.

Alive is who answers. Ready is who can serve a client that comes now: it does not stop, and one shard
at least answers; a proxy that is full is ready, since restarting it would only end the clients that it has. `/api` has
the tables of the schema `streamfrom` as JSON, names of users and hosts among them, so only this machine is
answered there.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Final

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from streamfrom.proxy.admin.metrics import Snapshot
from streamfrom.proxy.status.status_rows import TABLES


if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from concurrent.futures import ThreadPoolExecutor

    from streamfrom.proxy.config.file import User
    from streamfrom.proxy.local_statements.show_processlist import Process
    from streamfrom.proxy.status.status_source import StatusSource

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


# Who scrapes asks one at a time. More at once are refused, so that nobody keeps the proxy busy with its own figures.
AT_ONCE_MAX: Final = 8
_BODY_BYTES_MAX: Final = 1024
_KEEPALIVE_S: Final = 75.0


class AdminServer:
    """One HTTP listener.

    readers: the threads that make the metrics' text.
    administrator: a user that sees everything.
    processes: returns all clients.
    """

    def __init__(
        self,
        status: StatusSource,
        readers: ThreadPoolExecutor,
        administrator: User,
        processes: Callable[[], Iterable[Process]],
    ) -> None:
        self._status = status
        self._readers = readers
        self._administrator = administrator
        self._processes = processes
        self._under_way = 0
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError."""
        app = web.Application(client_max_size=_BODY_BYTES_MAX)
        app.router.add_get("/healthz", _healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._limited(self._metrics))
        app.router.add_get("/api/{table}", self._limited(self._api))
        self._runner = web.AppRunner(
            app, access_log=None, keepalive_timeout=_KEEPALIVE_S, shutdown_timeout=1.0
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError:
            await self.stop()
            raise

    @property
    def port(self) -> int:
        """The TCP port, also where 0 was asked for."""
        assert self._runner is not None
        port: int = self._runner.addresses[0][1]
        return port

    async def stop(self) -> None:
        """Close everything; twice is fine."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _limited(self, handler: Handler) -> Handler:
        """Let AT_ONCE_MAX requests at a time be answered; whether it lives is told however busy it is."""

        async def limited(request: web.Request) -> web.StreamResponse:
            if self._under_way >= AT_ONCE_MAX:
                raise web.HTTPServiceUnavailable(
                    text="too many requests at once\n", headers={"Retry-After": "1"}
                )
            self._under_way += 1
            try:
                response = await handler(request)
            finally:
                self._under_way -= 1
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Cache-Control"] = "no-store"
            return response

        return limited

    async def _readyz(self, _: web.Request) -> web.Response:
        reason = ""
        if self._status.member().is_stopping:
            reason = "stopping"
        elif all(shard.trouble is not None for shard in self._status.shard_status()):
            reason = "no shard answers"
        return web.Response(text=f"{reason or 'ready'}\n", status=503 if reason else 200)

    async def _metrics(self, _: web.Request) -> web.Response:
        status = self._status
        snapshot = Snapshot(
            await status.queues(),
            status.shard_status(),
            status.member(),
            status.clock.time_ns(),
            status.streams(),
        )
        loop = asyncio.get_running_loop()
        text = await loop.run_in_executor(self._readers, snapshot.text)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _api(self, request: web.Request) -> web.Response:
        # A page of elsewhere whose name was made to lead here has that name in its request.
        if not (_is_loopback(request.remote) and _is_loopback(request.url.host)):
            raise web.HTTPForbidden(text="/api answers clients on this machine\n")
        name = request.match_info["table"]
        if name not in TABLES:
            known = ", ".join(f"/api/{table}" for table in TABLES)
            raise web.HTTPNotFound(text=f"there are {known}\n")
        rows = await self._status.rows([name], self._administrator, self._processes())
        names = [column.name for column in TABLES[name]]
        return web.json_response([dict(zip(names, row, strict=True)) for row in rows[name]])


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="alive\n")


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
