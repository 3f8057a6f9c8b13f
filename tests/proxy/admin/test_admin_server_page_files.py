"""The page's files: what they may load, and how large they are."""

import re

import pytest

from streamfrom.proxy.admin.admin_server import page_routes


PATHS = list(page_routes())
VENDORED = {"/uplot.js", "/uplot.css"}
KIB = 1024


async def test_the_whole_page_is_small_and_never_makes_html_of_text(served):
    assert {"/", "/page.js", *VENDORED} <= set(PATHS)
    texts = {path: (await served.ask(path))[1] for path in PATHS}
    assert sum(map(len, texts.values())) <= 150 * KIB
    made = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\("
    assert not [path for path in PATHS if path.endswith(".js") and re.search(made, texts[path])]


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_comes_from_elsewhere_and_nothing_stands_inline(served, path):
    status, text, headers = await served.ask(path)
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    addresses = set(re.findall(r"https?://[^\s\"']+", text))
    # A namespace, and where the library's home is.
    assert addresses <= {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"} | {
        "https://github.com/leeoniya/uPlot,"
    }
    assert "style=" not in text
    assert not re.search(r"<script(?![^>]* src=)", text)
