"""Keys as terminals send them; `tests/integration/test_admin.py` has the program on one."""

import ast
import io

import pytest
from rich.cells import cell_len

from streamfrom.proxy.commands.top import (
    DOWN,
    TOP,
    UP,
    CannotTell,
    TopScreen,
    asks,
    parse_address,
    show,
    split_keys,
    top,
    watch,
)
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.status.status_rows import QUEUES, TABLES
from streamfrom.proxy.status.terminal_tables import VIEWS
from tests.cases import cases


@cases(sent=str, keys=ast.literal_eval)
def test_an_escape_sequence_is_one_key(sent, keys):
    assert split_keys(sent) == keys


async def test_it_needs_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(CannotTell, match="needs a terminal; streamfrom queues prints lines"):
        await top(parse_address("mysql://root@127.0.0.1:1", {}), 1.0)


NAMES = [column.name for column in QUEUES]
ROW = dict.fromkeys(NAMES) | {"keyspace": "shop", "queue": "orders", "delivered": 7}


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Enough(Exception):
    """As often as the test wants."""


async def shown(out, *answers):
    """Show these answers in turn, 2 s apart; return how long each pause was to be."""
    remaining = list(answers)
    moments_s = iter(range(0, 100, 2))
    pauses = []

    async def ask():
        answer = remaining.pop(0)
        if isinstance(answer, CannotTell):
            raise answer
        return answer

    async def pause(seconds):
        pauses.append(seconds)
        if not remaining:
            raise Enough

    with pytest.raises(Enough):
        await show(ask, 0.5, out, lambda: float(next(moments_s)), pause)
    return pauses


async def test_a_table_is_shown_once():
    async def ask():
        return [ROW]

    out = io.StringIO()
    await show(ask, None, out)
    heading, line = out.getvalue().splitlines()
    assert heading.split()[10] == "DELIVERED"
    assert line.startswith("shop.orders ")


async def test_who_watches_is_shown_rates_and_reasons_and_goes_on():
    out = io.StringIO()
    more = {**ROW, "delivered": 9}
    pauses = await shown(out, [ROW], [more], CannotTell("gone"), [more])
    assert pauses == [0.5] * 4
    lines = out.getvalue().splitlines()
    assert [line.split()[10] for line in lines if "QUEUE" in line] == [
        "DELIVERED",
        "DELIVERED/S",
        "DELIVERED",
    ]
    assert lines[3].split()[9] == "1"
    assert "gone" in lines


async def test_a_terminal_is_drawn_over():
    out = Terminal()
    await shown(out, [ROW], CannotTell("gone"))
    # The second answer begins where the first one did: behind as many steps up as that had lines.
    first, drawn = out.getvalue().split("gone")[0].rsplit("\x1b[1A", 1)
    assert "shop.orders" in first
    assert first.count("\x1b[1A") == 1
    assert "shop" not in drawn


class Asked:
    """Answers as the connections to a proxy do."""

    def __init__(self, answer):
        self._answer = answer
        self.statements = []

    async def rows(self, sql):
        self.statements.append(sql)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def test_a_proxy_is_asked_by_sql_and_who_is_refused_or_finds_nobody_is_told():
    control = Asked([tuple(ROW.values())])
    assert await asks(control)() == [ROW]  # type: ignore[arg-type]
    assert control.statements == [f"SELECT {', '.join(NAMES)} FROM streamfrom.queues"]
    refused = BackendError(1045, "28000", "Access denied for user 'app'")
    with pytest.raises(CannotTell, match="Access denied for user 'app'"):
        await asks(Asked(refused))()  # type: ignore[arg-type]
    nobody = parse_address("mysql://root@127.0.0.1:1", {})
    with pytest.raises(CannotTell, match=r"^mysql://root@127\.0\.0\.1:1/: "):
        await watch(nobody, None, io.StringIO())


# `streamfrom top` without a terminal: what its keys do, what is sorted how, and what fits.
def row(view, **known):
    return dict.fromkeys(column.name for column in TABLES[view]) | known


def queue(name, **known):
    return row("queues", keyspace="shop", queue=name, depth_is_exact=1, **known)


def names(screen, height=24):
    lines = screen.lines(200, height)[3:-1]
    return [line.split()[0] for line in lines if line]


def screen_of(*queues):
    screen = TopScreen()
    screen.told("queues", queues, 10.0)
    return screen


def test_a_column_is_chosen_and_the_largest_figures_come_first():
    screen = screen_of(queue("b", depth=3), queue("a", depth=None), queue("c", depth=40))
    assert names(screen) == ["shop.a", "shop.b", "shop.c"]
    assert "[queues]" in screen.lines(200, 9)[0]
    assert screen.lines(200, 9)[0].endswith("by queue ↑")
    assert not screen.press(">")
    assert names(screen) == ["shop.c", "shop.b", "shop.a"], "what is not known stands last"
    assert screen.lines(200, 9)[0].endswith("by unacked ↓")
    screen.press("r")
    assert names(screen) == ["shop.b", "shop.c", "shop.a"]
    for _ in range(3):
        screen.press("<")
    assert names(screen) == ["shop.a", "shop.b", "shop.c"]
    for _ in range(30):
        screen.press(">")
    assert "by ack time" in screen.lines(200, 9)[0]


@pytest.mark.parametrize("view", VIEWS)
def test_every_table_is_sorted_by_each_column_and_no_name_reaches_the_terminal(view):
    screen = TopScreen()
    screen.press(str([*VIEWS].index(view) + 1))
    hostile = {
        column.name: "\x1b]0;taken\x07" if "CHAR" in column.type else 7
        for column in TABLES[view]
    } | {"error": None, "unanswered": None}
    screen.told(view, [row(view), hostile, dict(hostile)], 1.0)
    for _ in range(14):
        screen.press(">")
        assert len(names(screen)) == 3
        assert not {"\x1b", "\x07"} & set("".join(screen.lines(300, 24)))


def test_another_table_is_asked_for_and_late_answers_are_dropped():
    screen = screen_of(queue("a"))
    assert not screen.press("1")
    assert screen.press("2")
    assert screen.view == "streams"
    screen.told("queues", [queue("b")], 11.0)
    assert names(screen) == []
    assert screen.press("\t")
    assert screen.view == "shards"
    assert not screen.press("?")


def test_it_scrolls_within_what_there_is():
    screen = screen_of(*(queue(f"q{number}") for number in range(9)))
    assert names(screen, 9) == ["shop.q0", "shop.q1", "shop.q2", "shop.q3"]
    screen.press(UP)
    screen.press(DOWN)
    assert names(screen, 9)[0] == "shop.q1"
    for _ in range(30):
        screen.press("j")
    assert names(screen, 9) == ["shop.q5", "shop.q6", "shop.q7", "shop.q8"]
    screen.press("k")
    assert names(screen, 9)[0] == "shop.q4"
    screen.press(TOP)
    assert names(screen, 9)[0] == "shop.q0"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (20, 6), (1, 1), (200, 3)])
def test_nothing_is_wider_or_higher_than_the_terminal(width, height):
    screen = screen_of(*(queue("队" * 300) for number in range(50)))
    lines = screen.lines(width, height)
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width


def test_a_reason_is_shown_above_the_last_figures_and_goes_with_the_next_answer():
    screen = screen_of(queue("a"))
    screen.failed("gone\x1b[2J")
    assert screen.lines(200, 9)[1] == r"gone\x1b[2J"
    assert names(screen) == ["shop.a"]
    screen.told("queues", [queue("a")], 12.0)
    assert screen.lines(200, 9)[1] == ""
