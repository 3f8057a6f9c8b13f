import io

import pytest

from streamfrom.proxy.commands.top import CannotTell, asks, parse_address, show, watch
from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.status.status_rows import QUEUES


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
