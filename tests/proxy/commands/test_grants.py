import ast
from dataclasses import replace

import pytest

from streamfrom.proxy.accounts.job_grants import Purpose
from streamfrom.proxy.commands.grants import GrantsRefused, Wanted, wanted
from tests.cases import cases
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import config_of


def asked(name, queue=None):
    config = config_of(FakeServer())
    (keyspace,) = config.keyspaces
    keyspaces = keyspace, replace(keyspace, name="plain.eu")
    return wanted(replace(config, keyspaces=keyspaces), "reader", name, queue)


@cases(queue=ast.literal_eval, found=ast.literal_eval)
def test_a_queue_is_one_of_the_longest_keyspace_that_fits(queue, found):
    assert asked("app", queue) == Wanted(Purpose.READER, "app", found)


@cases(name=str, queue=ast.literal_eval, told=str)
def test_what_cannot_be_meant_is_refused(name, queue, told):
    with pytest.raises(GrantsRefused) as caught:
        asked(name, queue)
    assert str(caught.value) == told
