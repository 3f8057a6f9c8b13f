"""The figures of many queues hold no client up."""

from streamfrom.proxy.fairness import in_turns
from tests.proxy.admin.conftest import QUEUES, OtherClient


async def test_others_have_a_turn_after_a_few_queues():
    other = OtherClient()
    async for some in in_turns(QUEUES):
        other.saw(some)
    other.check()


async def test_no_queues_take_no_turn():
    nothing: list[str] = []
    assert [some async for some in in_turns(nothing)] == []
