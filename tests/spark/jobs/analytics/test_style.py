"""The style sheet: nothing from elsewhere, and the same by day and by night."""

import re

from streamfrom.spark.jobs.analytics.style import STYLE


def test_it_fetches_nothing():
    assert not re.search(r"url\(|@import|@font-face|//", STYLE)


def test_day_and_night_have_the_same_colours():
    day, night = (
        set(re.findall(r"(--[a-z0-9-]+):", part))
        for part in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    )
    assert day == night
