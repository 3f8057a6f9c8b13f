from dataclasses import replace

import pytest

from streamfrom.proxy.accounts.job_grants import Purpose
from streamfrom.proxy.grants import GrantsRefused, Wanted, wanted
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import config_of


def asked(name, queue=None):
    config = config_of(FakeServer())
    (keyspace,) = config.keyspaces
    keyspaces = keyspace, replace(keyspace, name="plain.eu")
    return wanted(replace(config, keyspaces=keyspaces), "reader", name, queue)


@pytest.mark.parametrize(
    ("queue", "found"),
    [
        (None, None),
        ("plain.q", ("plain", "q")),
        ("plain.eu.q", ("plain.eu", "q")),
        ("plain.eu", ("plain", "eu")),
        ("plain.q.q", ("plain", "q.q")),
    ],
)
def test_a_queue_is_one_of_the_longest_keyspace_that_fits(queue, found):
    assert asked("app", queue) == Wanted(Purpose.READER, "app", found)


@pytest.mark.parametrize(
    ("name", "queue", "told"),
    [
        ("", None, "expected the name of an account, got an empty one"),
        ("a\nb", None, r"expected no control character in the account 'a\nb'"),
        ("sf\0", None, r"expected no control character in the account 'sf\x00'"),
        ("a\x1b[2Jb", None, r"expected no control character in the account 'a\x1b[2Jb'"),
        ("a\u202eb", None, r"expected no control character in the account 'a\u202eb'"),
        ("a", "plain.q\n", r"expected no control character in the queue 'plain.q\n'"),
        ("a", "q", "expected keyspace.queue of a keyspace of plain, plain.eu, got q"),
        ("a", "plain.", "expected keyspace.queue of a keyspace of plain, plain.eu, got plain."),
        ("a", "shop.q", "expected keyspace.queue of a keyspace of plain, plain.eu, got shop.q"),
    ],
)
def test_what_cannot_be_meant_is_refused(name, queue, told):
    with pytest.raises(GrantsRefused) as caught:
        asked(name, queue)
    assert str(caught.value) == told
