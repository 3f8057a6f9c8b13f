"""The page's files: what they may load, and how large they are."""

import re

import pytest


PATHS = ["/", "/page.css", "/page.js", "/icon.svg"]
KIB = 1024


async def test_the_whole_page_is_small(served):
    assert sum([len((await served.ask(path))[1]) for path in PATHS]) <= 100 * KIB


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
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a namespace
    assert "style=" not in text
    assert not re.search(r"<script(?![^>]* src=)", text)


async def test_the_script_never_makes_html_of_text(served):
    _, text, _ = await served.ask("/page.js")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
