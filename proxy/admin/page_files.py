"""The files of the status page, and the headers that keep everything else out of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web


_KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HEADERS: Final = {
    # Its own files and nothing else: no inline script or style, no frame around it.
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
