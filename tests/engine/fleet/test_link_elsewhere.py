"""One link, whose owner and whose other end are the test."""

import asyncio
from functools import partial

from streamfrom.engine.fleet.link_elsewhere import LinkElsewhere
from streamfrom.engine.fleet.peer_link import (
    DefinitionsChanged,
    RequestDone,
)
from tests.engine.fleet.test_streams_elsewhere import Link, member


class Owner:
    """Who has the streams of the link: it notes what it hears."""

    def __init__(self):
        self.said = []

    def heard(self, _link, record, stream, message):
        self.said.append((record, stream, message))

    def link_lost(self, _link, reason):
        self.said.append(reason)


def connected():
    owner = Owner()
    link = LinkElsewhere(member("m1"), owner.heard, owner.link_lost)
    link.link = Link(link)
    return owner, link


CHANGED = partial(DefinitionsChanged, keyspace="ks")


async def test_each_answer_goes_to_the_request_with_its_number():
    _, link = connected()
    asked = [asyncio.create_task(link.request(CHANGED, 3)) for _ in range(2)]
    await asyncio.sleep(0)
    assert link.link.sent == [CHANGED(1), CHANGED(2)]
    link.heard(RequestDone(2, rows=7))
    link.heard(RequestDone(2, rows=8))
    link.heard(RequestDone(99))
    assert await asked[1] == 7
    link.heard(RequestDone(1))
    assert await asked[0] is None
    assert link.wanted == {}


async def test_a_request_without_an_answer_ends_with_the_link_or_its_time():
    owner, link = connected()
    assert await link.request(CHANGED, 3) is None
    asked = asyncio.create_task(link.request(CHANGED, 3))
    await asyncio.sleep(0)
    link.lost("connection reset")
    assert await asked is None
    assert owner.said == ["connection reset"]
    link.send(CHANGED(5))  # goes nowhere, and is no fault
