"""Members that are restarted one after the other: what clients hold is acked, or sent again when it is said to be."""

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.load import Audit
from tests.fixtures.streams import message_table


pytestmark = [pytest.mark.db, pytest.mark.one_server]

RELEASE_S = 1
# Neither a poll nor the end of a lease brings anything within a test.
SLOW = message_table(poller_interval=600, ack_wait=600, more=f",vt_release_after={RELEASE_S}")


@pytest.mark.slow
def test_a_rolling_restart_under_load_leaves_no_message_to_its_lease(
    server, database, start_proxy, fleet
):
    execute(server, SLOW, database=database)
    members = fleet(3)
    audit = Audit(database)
    try:
        for member in members:
            audit.produce(member.port)
            audit.receive(member.port)
        for number, member in enumerate(members):
            audit.sends_more(100)
            assert member.stop() == 0
            text = member.config.read_text().replace(':0"', f':{member.port}"')
            members[number] = start_proxy(text)
        audit.sends_more(100)
        audit.check(members[0].connect(database=database, autocommit=True))
    finally:
        audit.close()
