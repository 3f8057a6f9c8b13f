import pytest

from streamfrom.proxy.backends.backend import Backend
from streamfrom.proxy.backends.statement_ids import StatementIds, StatementKey
from streamfrom.proxy.execution.prepared_execution import CursorExecution, Execution
from streamfrom.proxy.wire.commands import stmt_execute
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
        self.keeps_kinds = True

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


async def test_a_connection_gets_its_own_id_and_the_clients_parameters(backend):
    body = b"\0\1\x08\0" + (7).to_bytes(8, "little")
    for execution, flags in (
        (Execution(KEY, body, 1), 0),
        (CursorExecution(KEY.text, body), 1),
    ):
        await execution.prepare_on(backend)
        sent = stmt_execute(backend.last_id, flags, body)
        assert execution.packet_for(backend) == sent
