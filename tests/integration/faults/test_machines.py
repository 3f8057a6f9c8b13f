"""Members of a fleet on machines of their own: joined, parted while the database is there, and one that nobody reaches."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pymysql.connections import Connection

from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.fork_server import run_to_end
from tests.fixtures.machines import Network, why_no_machines
from tests.fixtures.relay import Relay
from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import Consumer, eventually, message_table, rows, run


pytestmark = pytest.mark.one_server

DISPATCHED = "is dispatched from here"
NOT_REACHED = "a member cannot be reached"
# Nobody has it.
NOWHERE = "10.201.7.250:7000"


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    reason = why_no_machines()
    if reason is not None:
        pytest.skip(reason)
    network = Network(2)
    yield network
    network.close()


@pytest.fixture
def way(network: Network, server: DatabaseServer) -> Iterator[Relay]:
    """Where all machines reach the server."""
    way = Relay(server.port, listener=network.listener())
    yield way
    way.close()


@pytest.fixture
def start(network, way, database, start_proxy):
    """A function that starts a proxy on a machine."""

    def start(machine, fleet="", stream_grace=60):
        keyspace = keyspace_toml(database, [way]).replace("127.0.0.1", network.hub.address)
        serves = f'[server]\nlisten = "127.0.0.1:0"\nstream_grace = {stream_grace}\n'
        return start_proxy(f"{serves}{keyspace}[fleet]\n{fleet}\n", machine=machine)

    yield start
    network.part(on=False)


def insert(producer: "Connection[Any]", idents: Sequence[int]) -> None:
    for ident in idents:
        run(producer, f"INSERT INTO my_message (id) VALUES ({ident})")


def come(streams: Sequence[Consumer], idents: Sequence[int]) -> None:
    """Return once all *idents* have come, to whichever stream."""

    def have_come() -> bool:
        for stream in streams:
            while stream.poll(0.02) is not None:
                pass
        return {row[0] for stream in streams for row in stream.rows} >= set(idents)

    eventually(have_come, f"{idents} come")


def test_parted_members_are_one_fleet_again(
    network, server, database, start, consume, tmp_path
):
    """No poll comes: what a parted member commits is looked for by the dispatcher, which misses its news."""
    table = message_table(poller_interval=10_000, ack_wait=600, more=",vt_release_after=never")
    execute(server, table, database=database)
    first = start(network.machines[0])
    first.wait_for_log(DISPATCHED)
    second = start(network.machines[1])
    here, there = (consume(each, database=database) for each in (first, second))
    producer = second.connect(database=database, autocommit=True)

    def sends_more(first: int) -> bool:
        ident = first + len(here.rows) + len(there.rows)
        insert(producer, [ident])
        come([here, there], [ident])
        return True

    eventually(lambda: sends_more(1001) and here.rows and there.rows, "messages go to both")
    asked = "SELECT address FROM streamfrom.members"
    assert network.machines[0].address in str(rows(producer, asked))

    network.part()
    insert(producer, range(21, 31))
    come([here], range(21, 31))
    held = there.rows[0][0]
    ack = f"UPDATE my_message SET time_acked = 1800000000000000005 WHERE id = {held}"
    assert run(producer, ack) == 1
    second.wait_for_log(NOT_REACHED)
    checked = run_to_end(
        ["check", "--config", str(second.config)], tmp_path, network.machines[1].name
    )
    assert checked.stdout.count("not reached from this machine") == 1
    assert network.machines[0].address in checked.stdout

    network.part(on=False)
    second.wait_for_log("a member is reached again")
    came = len(there.rows)

    served_again = "the stream that was kept open is given messages again"
    eventually(lambda: sends_more(2001) and len(there.rows) > came, served_again)
    assert rows(producer, "SELECT MAX(epoch) FROM my_message") <= ((1,),), "nothing went twice"


def test_a_member_out_of_reach_serves(network, server, database, start, consume, tmp_path):
    """As behind NAT, without an `advertise` that leads through: it reaches others, and they do not reach it."""
    execute(server, message_table(poller_interval=1, ack_wait=600), database=database)
    first = start(network.machines[0])
    first.wait_for_log(DISPATCHED)
    hidden = start(network.machines[1], f'advertise = "{NOWHERE}"')
    at_hidden = consume(hidden, database=database)
    insert(first.connect(database=database, autocommit=True), [1])
    come([at_hidden], [1])
    checked = run_to_end(
        ["check", "--config", str(first.config)], tmp_path, network.machines[0].name
    )
    assert checked.returncode == 0
    assert f"at {NOWHERE}: not reached from this machine" in checked.stdout

    assert first.stop() == 0
    hidden.wait_for_log(DISPATCHED)
    third = start(network.machines[0], stream_grace=3)
    lost = consume(third, database=database)
    producer = third.connect(database=database, autocommit=True)
    insert(producer, [2, 3])
    come([at_hidden], [2, 3])
    code, text = lost.error()
    assert (code, f"at {NOWHERE}: no connection" in text) == (1105, True), text
    third.wait_for_log(NOT_REACHED)
    assert NOWHERE in third.log()
