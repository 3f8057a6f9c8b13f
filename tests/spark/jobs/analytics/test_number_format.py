"""Numbers, durations and times as the report says them."""

import pytest

from streamfrom.spark.jobs.analytics import number_format


S = 10**9


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (None, "—"),
        (0, "0"),
        (0.25, "0.25 ms"),
        (999.7, "1 s"),
        (1500, "1.5 s"),
        (60_000, "1 min"),
        (100_000, "1 min 40 s"),
        (3_600_000 * 5 + 60_000 * 7, "5 h 7 min"),
        (86_400_000 * 3, "3 d"),
        (86_400_000 * 20_778.7, "20,779 d"),
    ],
)
def test_durations_in_the_units_that_a_person_would_say(milliseconds, said):
    assert number_format.duration(milliseconds) == said


def test_rates_shares_and_counts():
    told = [number_format.rate(rate) for rate in (None, 0, 12_345, 7.5, 0.5, 0.0005)]
    assert told == ["—", "0", "12.3 k/s", "7.5/s", "30/min", "1.8/h"]
    assert number_format.rate(1e-6) == "0.0864/day"
    assert [number_format.share(*pair) for pair in ((1, 0), (1, 400), (1, 3))] == [
        "—",
        "0.25 %",
        "33 %",
    ]
    assert (number_format.count(None), number_format.count(1234567)) == ("—", "1,234,567")


def test_moments_that_no_calendar_holds_stay_numbers():
    assert number_format.moment(0) == "1970-01-01 00:00:00"
    assert number_format.moment(10**25) == f"{10**25} ns"


def test_windows_are_what_people_count_in():
    assert number_format.bucket_ns(0, 6 * 3600 * S) == 300 * S
    assert number_format.bucket_ns(0, 60 * S) == S
