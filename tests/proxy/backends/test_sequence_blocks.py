import asyncio

import pytest

from streamfrom.engine.errors import SequenceError
from streamfrom.proxy.backends.sequence_blocks import Sequences


class Control:
    """A server with one sequence, which counts the transactions on it."""

    def __init__(self, next_id=1, cache=10, comment="vitess_sequence"):
        self.row = (next_id, cache)
        self.comment = comment
        self.transactions = 0
        self.texts = []

    async def rows(self, sql):
        self.texts.append(sql)
        return [] if self.comment is None else [(self.comment,)]

    async def change(self, sql, update):
        self.transactions += 1
        await asyncio.sleep(0)
        rows = [self.row]
        self.texts += [sql, update(rows)]
        self.row = (int(self.texts[-1].split()[5]), self.row[1])
        return rows


async def test_two_proxies_share_a_sequence_and_sessions_at_the_same_time_a_block():
    control = Control()
    one, two = Sequences(control), Sequences(control)  # type: ignore[arg-type]
    firsts = [await each.reserve("seq", 3) for _ in range(20) for each in (one, two)]
    values = [first + step for first in firsts for step in range(3)]
    assert len(set(values)) == 120
    control = Control(cache=100)
    sequences = Sequences(control)  # type: ignore[arg-type]
    firsts = await asyncio.gather(*(sequences.reserve("seq", 2) for _ in range(50)))
    assert sorted(firsts) == list(range(1, 101, 2))
    assert control.transactions == 1


async def test_what_cannot_be_used_leaves_nothing_reserved():
    control = Control(cache=0)
    sequences = Sequences(control)  # type: ignore[arg-type]
    with pytest.raises(SequenceError, match="invalid cache value"):
        await sequences.reserve("seq", 1)
    with pytest.raises(SequenceError, match="invalid increment"):
        await sequences.reserve("seq", 0)
    control.row = (1, 5)
    assert await sequences.reserve("seq", 1) == 1


@pytest.mark.parametrize(
    ("comment", "expected"),
    [("vitess_sequence", True), ("a vitess_sequence of ids", True), ("", False), (None, False)],
)
async def test_the_comment_tells_a_sequence_and_is_asked_once(comment, expected):
    control = Control(comment=comment)
    sequences = Sequences(control)  # type: ignore[arg-type]
    assert await sequences.is_sequence("it's") is expected
    assert "table_name = 'it''s'" in control.texts[0]
    assert await sequences.is_sequence("it's") is expected
    assert len(control.texts) == (1 if expected else 2)
