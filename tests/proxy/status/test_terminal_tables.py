import pytest
from rich.cells import cell_len

from streamfrom.proxy.status.status_rows import QUEUES
from streamfrom.proxy.status.terminal_tables import (
    TableSample,
    count_text,
    table_lines,
    time_text,
)


BLANK = dict.fromkeys(column.name for column in QUEUES)
NAMES = (
    "depth", "depth_is_exact", "parked", "ready", "in_flight", "blocked", "dead_lettered", "oldest_ready_age_s",
    "streams", "delivered", "redelivered", "acked", "delivery_latency_p99_s", "ack_latency_p99_s",
)  # fmt: skip
KNOWN = dict(
    zip(NAMES, (41, 1, 8, 3, 5, 1, 0, 7.26, 2, 1000, 10, 990, 0.0042, 90.0), strict=True)
)
ORDERS = {**BLANK, "keyspace": "shop", "queue": "orders", **KNOWN}


def lines(*rows, before=None, at_s=10.0):
    return table_lines("queues", TableSample(rows, at_s), before)


def test_a_queue_is_a_line_under_its_headings():
    other = {**ORDERS, "queue": "mails", "depth": 1_234_567, "depth_is_exact": 0, "ready": None}
    assert lines(ORDERS, other) == [
        "QUEUE        UNACKED  READY  IN FLIGHT  BLOCKED  PARKED  DEAD  OLDEST  STREAMS  DELIVERED  REDELIVERED  ACKED  LATENCY  ACK TIME",
        "shop.orders       41      3          5        1       8     0    7.3s        2       1000           10    990      4ms       90s",
        "shop.mails    ~1234k      -          5        1       8     0    7.3s        2       1000           10    990      4ms       90s",
    ]


def test_a_queue_that_cannot_be_used_and_figures_that_lack_a_member_say_why():
    bad = {**BLANK, "keyspace": "shop", "queue": "bad", "error": "vt_ack_wait missing"}
    *_, line = lines(ORDERS, bad)
    assert line.split() == ["shop.bad", *"-" * 13, "vt_ack_wait", "missing"]
    (_, line) = lines({**ORDERS, "unanswered": "member a at h:1: late", "ready": None})
    assert line.endswith("90s  without member a at h:1: late")
    assert lines() == ["no message tables"]


def test_later_tables_have_rates_unless_the_clock_stands_still():
    before = TableSample([ORDERS], 10.0)
    heading, line = lines({**ORDERS, "delivered": 1100, "acked": 991}, before=before, at_s=14.0)
    assert heading.split()[10:13] == ["DELIVERED/S", "REDELIVERED/S", "ACKED/S"]
    assert line.split()[9:12] == ["25", "0", "0.2"]
    _, line = lines(ORDERS, before=before, at_s=10.0)
    assert line.split()[9:12] == ["1000", "10", "990"]


def test_a_character_may_take_two_columns_of_a_terminal():
    heading, *found = lines({**ORDERS, "queue": "队列"}, {**ORDERS, "queue": "очередь"})
    assert [line.split()[0] for line in found] == ["shop.队列", "shop.очередь"]
    assert len({cell_len(line) for line in [heading, *found]}) == 1


@pytest.mark.parametrize(
    ("name", "shown"), [("[red]x[/red]", "[red]x[/red]"), ("\x1b[2J\nx", r"\x1b[2J\nx")]
)
def test_a_name_is_no_markup_and_no_command_to_a_terminal(name, shown):
    _, line = lines({**ORDERS, "queue": name})
    assert line.startswith(f"shop.{shown} ")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"), (0, "0"), (0.24, "0.2"), (9.96, "10.0"), (12.3, "12"), (9999, "9999"),
        (10_000, "10k"), (1_234_567, "1234k"), (98_765_432, "98M"), (10**13, "10000G"),
    ],
)  # fmt: skip
def test_counts(count, text):
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"), (0.0, "0ms"), (0.0042, "4ms"), (1.0, "1.0s"), (90.0, "90s"), (120.0, "2m"),
        (7199.0, "120m"), (7200.0, "2h"), (90_000.0, "25h"), (172_800.0, "2d"),
    ],
)  # fmt: skip
def test_times(seconds, text):
    assert time_text(seconds) == text
