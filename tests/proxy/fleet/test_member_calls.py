"""Questions to a member over real sockets of this machine: what comes back when there is no answer."""

import socket
from dataclasses import replace

import pytest

from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.member_calls import NO_ADDRESS, ask
from tests.proxy.fleet.members import Process, fleet_of


@pytest.fixture
async def asker():
    """One that asks, and a member of a version before, which has no method of the service."""
    async with fleet_of(Process("one"), Process("two", version="0.9")) as (one, two):
        yield one, two.own


async def asked(one, member, timeout_s):
    request = pb.StatusRequest()
    return await ask(one.links.channel, member, "Status", request, pb.StatusReply, timeout_s)


async def test_a_version_that_does_not_know_the_question_and_a_member_without_address(asker):
    one, member = asker
    assert await asked(one, member, 60.0) == "version 0.9 does not know the question"
    assert await asked(one, replace(member, address=""), 60.0) == NO_ADDRESS


async def test_who_accepts_and_says_nothing_is_given_up(asker):
    one, member = asker
    # The system accepts for it.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        found = await asked(one, replace(member, address=address), 0.1)
    assert isinstance(found, str)
    assert found
