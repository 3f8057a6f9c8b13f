from types import SimpleNamespace

import pytest

from streamfrom.proxy.backends.backend import Backend
from streamfrom.proxy.backends.statement_ids import StatementIds, StatementKey
from streamfrom.proxy.execution.prepared_execution import CursorExecution, Execution
from streamfrom.proxy.wire.attribute_encoding import COUNT_FOLLOWS, Attribute, into_execute
from streamfrom.proxy.wire.binary_parameters import Parameter
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.prepare_response import PrepareReader
from tests.proxy.rigs import RecordingLink


KEY = StatementKey(b"SELECT ?", "db", ())


class Connection(Backend):
    """A backend connection that prepares at once, with ids from 1."""

    def __init__(self):
        self.statements = StatementIds()
        self.client = RecordingLink()
        self.link = self.client.link
        self.last_id = 0
        self.takes_attributes = self.takes_bulk = False
        self.owner = None

    async def prepare(self, key):
        answer = await self.prepare_apart(key.text)
        self.statements.put(key, answer.statement_id)
        return answer

    async def prepare_apart(self, sql):
        self.last_id += 1
        answer = PrepareReader()
        answer.statement_id = self.last_id
        return answer


@pytest.fixture
def backend():
    return Connection()


async def test_a_server_of_attributes_gets_the_owners_behind_the_parameters(backend):
    backend.takes_attributes = True
    attribute = Attribute(b"n", Parameter(FieldType.VAR_STRING, unsigned=False, data=b"v"))
    body = b"\0\1\x08\0" + (7).to_bytes(8, "little")
    for make in (lambda: Execution(KEY, body, 1), lambda: CursorExecution(KEY.text, body, 1)):
        execution = make()
        await execution.prepare_on(backend)
        for attributes in ((), (attribute,)):
            backend.owner = SimpleNamespace(attributes=attributes)
            packet = execution.packet_for(backend)
            assert packet is not None
            assert packet[9] & COUNT_FOLLOWS
            assert packet[14:] == into_execute(body, 1, attributes)
