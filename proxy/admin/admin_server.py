"""The status page, `/healthz`, `/readyz`, `/metrics` and `/api`, by aiohttp.

A proxy is alive if it answers. It is ready if it can serve a new client: it is not stopping, and at least one shard
responds. A full proxy is ready, because restarting it would only end its clients. The page
shows the results of `/api` to the users of the configuration (`admin_gate`), to each as far as its rights go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from streamfrom.proxy import listening
from streamfrom.proxy.admin import history
from streamfrom.proxy.admin.admin_gate import AdminGate, Visitor
from streamfrom.proxy.admin.metrics import CONTENT_TYPE, MetricsPage
from streamfrom.proxy.admin.queue_api import QueueApi
from streamfrom.proxy.backends.account import account_of
from streamfrom.proxy.fairness import in_turns
from streamfrom.proxy.rights.desk import Question
from streamfrom.proxy.sessions.process_list import LocalSessions
from streamfrom.proxy.sessions.services import Asker, Services
from streamfrom.proxy.status.status_rows import TABLES, queue_rows
from streamfrom.proxy.status.status_source import Viewer


if TYPE_CHECKING:
    import ssl

    from streamfrom.engine.messaging.figures.figures import QueueFigures
    from streamfrom.proxy.admin.queue_api import RunAs
    from streamfrom.proxy.status.fleet_figures import MembersFigures

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


log = structlog.get_logger()
# Requests that are not HTTP are answered quietly; any stranger could make each of them write a traceback into the log.
_http_log: Final = logging.getLogger(__name__)
_http_log.addFilter(
    lambda line: not (line.exc_info and isinstance(line.exc_info[1], HttpProcessingError))
)

# A scraper sends one request at a time. More at once are refused, so that no client keeps the proxy busy with its own figures.
AT_ONCE_MAX: Final = 8
# Enough for the ids of some hundred selected messages.
_BODY_BYTES_MAX: Final = 128 << 10
_KEEPALIVE_S: Final = 75.0
_BACKLOG: Final = 128
# A page, a scraper and a balancer have a handful of connections each.
_LIMITS: Final = listening.PortLimits(connections=256, per_address=64)


class AdminServer:
    """One HTTP listener, which speaks TLS if clients of the wire may.

    run_as: runs the statements of acting users.
    """

    def __init__(self, services: Services, run_as: RunAs) -> None:
        self._services = services
        self._run_as = run_as
        self._status = services.status
        self._gate = AdminGate(services)
        self.history = history.History()  # the last hour of each queue
        self._sampling: asyncio.Task[None] | None = None
        # An action may wait for a lock of a row for minutes; figures and actions do not wait for each other.
        self._figures, self._actions = (asyncio.Semaphore(AT_ONCE_MAX) for _ in range(2))
        self._runner: web.AppRunner | None = None
        self._listener: listening.Listener | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError."""
        app = web.Application(client_max_size=_BODY_BYTES_MAX)
        app.on_response_prepare.append(_guard)
        for path, answer in page_routes().items():
            app.router.add_get(path, answer)
        app.router.add_get("/healthz", _healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._limited(self._metrics))
        # Logins may wait, so they have separate limits.
        app.router.add_post("/api/login", self._gate.log_in)
        app.router.add_post("/api/logout", self._gate.log_out)
        app.router.add_get("/api/session", self._session)
        app.router.add_get("/api/overview", self._limited(self._overview))
        app.router.add_get("/api/queue", self._limited(self._queue))
        api = QueueApi(self._services, self._gate, self._viewer, self._run_as)
        for method, path, handler in api.routes():
            app.router.add_route(method, path, self._limited(handler))
        app.router.add_get("/api/{table}", self._limited(self._api))
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_http_log,
            keepalive_timeout=_KEEPALIVE_S,
            shutdown_timeout=1.0,
        )
        await self._runner.setup()
        try:
            server = self._runner.server
            assert server is not None
            self._listener = listening.Listener(
                "admin",
                listening.bind_tcp("admin.listen", host, port),
                server,
                backlog=_BACKLOG,
                limits=_LIMITS,
                tls=self._tls(),
                opening=b"\r\n\r\n",
            )
        except OSError:
            await self.stop()
            raise
        self._sampling = asyncio.create_task(self._sample())

    def _tls(self) -> ssl.SSLContext | None:
        tls = self._services.tls
        return None if tls is None else tls.for_listener(lambda: self._services.tls)

    @property
    def port(self) -> int:
        """The TCP port, even if 0 was configured."""
        assert self._listener is not None
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Close everything; twice is fine."""
        if self._sampling is not None:
            self._sampling.cancel()
            with suppress(asyncio.CancelledError):
                await self._sampling
            self._sampling = None
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _sample(self) -> None:
        while True:
            try:
                others = await self._status.others.ask(["queues"])
                # Without a member counters would fall, and rise by as much when it answers again.
                if not others.has_gap:
                    queues = await self._status.fleet_queues(others)
                    self.history.forget_all_but(queues)
                    async for some in in_turns(queues):
                        self.history.sample(some, self._now_s())
            except Exception:  # the next sample may well succeed
                log.exception("cannot sample the queues for their charts")
            await asyncio.sleep(history.SAMPLE_S)

    def _now_s(self) -> float:
        return self._status.clock.time_ns() / 10**9

    def _limited(self, handler: Handler) -> Handler:
        """Allow AT_ONCE_MAX requests for figures at a time, and as many actions; `/healthz` is answered however busy it is."""

        async def limited(request: web.Request) -> web.StreamResponse:
            places = self._actions if request.method == "POST" else self._figures
            if places.locked():
                raise web.HTTPServiceUnavailable(
                    text="too many requests at once\n", headers={"Retry-After": "1"}
                )
            async with places:
                return await handler(request)

        return limited

    async def _readyz(self, _: web.Request) -> web.Response:
        reason = ""
        if self._status.member().is_stopping:
            reason = "stopping"
        elif not any(shard.is_up for shard in self._status.shard_status()):
            reason = "no shard answers"
        return web.Response(text=f"{reason or 'ready'}\n", status=503 if reason else 200)

    async def _metrics(self, _: web.Request) -> web.Response:
        status = self._status
        queues = await status.watch.queues()
        page = MetricsPage(
            status.shard_status(),
            status.member(),
            status.clock.time_ns(),
            status.watch.streams(),
        )
        # On the loop: a thread holds all others up for 5 ms each time it runs.
        async for some in in_turns(queues):
            page.add(some)
        return web.Response(body=page.text(), headers={"Content-Type": CONTENT_TYPE})

    async def _session(self, request: web.Request) -> web.Response:
        visitor = self._gate.visitor(request)
        return web.json_response(
            {
                "user": visitor.user.name,
                "csrf": visitor.csrf,
                "is_open": visitor.token is None,
                "figures": history.figure_records(),
            }
        )

    async def _api(self, request: web.Request) -> web.Response:
        visitor = self._gate.visitor(request)
        name = request.match_info["table"]
        if name not in TABLES:
            known = ", ".join(f"/api/{table}" for table in TABLES)
            raise web.HTTPNotFound(text=f"there are {known}\n")
        return web.json_response(
            (await self._tables([name], await self._viewer(visitor)))[name]
        )

    async def _overview(self, request: web.Request) -> web.Response:
        viewer = await self._viewer(self._gate.visitor(request))
        others = await self._status.others.ask(TABLES, viewer)
        tables = await self._tables(["streams", "shards", "members"], viewer, others)
        queues = await self._status.fleet_queues(others, viewer)
        rows = await self._status.queue_rows(queues, viewer)
        return web.json_response(
            {
                "queues": history.queue_records(rows, queues, self._rates(others)),
                **tables,
                "limits": history.limits(self._services.config),
            }
        )

    async def _queue(self, request: web.Request) -> web.Response:
        visitor = self._gate.visitor(request)
        name = request.query.get("keyspace"), request.query.get("queue")
        try:
            after_s = float(request.query.get("after", "0"))
        except ValueError:
            raise web.HTTPBadRequest(text="after: expected a moment in seconds\n") from None
        viewer = await self._viewer(visitor)
        others = await self._status.others.ask(["queues", "streams"], viewer)
        tables = await self._tables(["streams"], viewer, others)
        queues = await self._status.fleet_queues(others, viewer)
        found = [one for one in queues if (one.table.keyspace, one.table.name) == name]
        if not found:
            raise web.HTTPNotFound(text="no such queue that you may see and that can be used\n")
        (queue,) = found
        now_ns = self._status.clock.time_ns()
        (record,) = history.queue_records(
            queue_rows(found, [], now_ns), found, self._rates(others)
        )
        series = self.history.series(queue.table.keyspace, queue.table.name)
        return web.json_response(
            {
                "queue": record,
                "shards": history.shard_records(queue, now_ns),
                "streams": [
                    one for one in tables["streams"] if (one["keyspace"], one["queue"]) == name
                ],
                "settings": history.setting_records(queue),
                "columns": queue.table.columns,
                "history": history.newer(series, after_s),
            }
        )

    def _rates(self, others: MembersFigures) -> Callable[[QueueFigures], history.Rates | None]:
        now_s = self._now_s()
        return lambda queue: None if others.has_gap else self.history.rates(queue, now_s)

    async def _viewer(self, visitor: Visitor) -> Viewer:
        asker = Asker(visitor.user.name, visitor.is_admin)
        processes = LocalSessions(self._services.sessions).processes(asker)
        account, shards = account_of(visitor.user), self._status.shards.values()
        keys = [Question(account, None, shard, None) for shard in shards]
        sight = await self._services.rights.sight(keys)
        return Viewer(visitor.user, visitor.is_admin, processes, sight)

    async def _tables(
        self, names: list[str], viewer: Viewer, others: MembersFigures | None = None
    ) -> dict[str, list[history.Record]]:
        rows = await self._status.rows(names, viewer, others)
        return {name: history.records(name, rows[name]) for name in names}


async def _guard(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="alive\n")


_KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HEADERS: Final = {
    # Only its own files: no inline script or style, no frame around it.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


def page_routes() -> dict[str, Callable[[web.Request], Awaitable[web.Response]]]:
    """Return the handlers of the page's files by path; they are read now, some 100 kB."""
    folder = Path(__file__).parent / "page"
    found = {
        f"/{file.name}": partial(_answer, file.read_bytes(), kind)
        for file in sorted(folder.iterdir())
        if (kind := _KINDS.get(file.suffix)) is not None
    }
    return {"/": partial(_answer, (folder / "index.html").read_bytes(), "text/html"), **found}


async def _answer(body: bytes, kind: str, _: web.Request) -> web.Response:
    return web.Response(body=body, content_type=kind, charset="utf-8")
