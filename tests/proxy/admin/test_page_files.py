"""The page's files: what they may load, and how large they are."""

import re

import pytest

from streamfrom.proxy.admin.page_files import page_routes


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


def luminance(colour):
    """Return the relative luminance of a colour. Source: WCAG 2.2."""
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


async def test_every_text_can_be_read_on_its_ground_in_both_schemes(served):
    _, css, _ = await served.ask("/page.css")
    schemes = [
        dict(re.findall(r"--([\w-]+): (#\w+)", each))
        for each in re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    ]
    assert len(schemes) == 2
    for scheme in schemes:
        for name in ("text", "soft", "accent", "bad", "warn", "good", "a", "b", "c"):
            grounds = {"ground", "card", f"{name}-ground"} & scheme.keys()
            for ground in grounds:
                dark, light = sorted(map(luminance, (scheme[name], scheme[ground])))
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, ground)
