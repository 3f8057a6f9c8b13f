import pytest

from streamfrom.proxy.backends.pooling.connection_handover import (
    fits,
    hand_over,
    hand_over_now,
    take_diagnostics,
)
from streamfrom.proxy.backends.session_variables import Settings, names
from streamfrom.proxy.errors import BackendError
from tests.proxy.backends.pools import Tenant, opened
from tests.proxy.fake_answers import Error, HangUp, Ok, rows_of


ANN, BOB = Tenant(), Tenant()


async def test_residue_is_for_its_owner_alone_and_others_have_everything_said_again(server):
    backend = await opened(server)
    await hand_over(backend, ANN, Settings(), "db")
    backend.has_residue = True
    heard = len(server.heard)
    assert fits(backend, ANN, Settings(), "db")
    await hand_over(backend, ANN, Settings(), "db")
    assert server.heard[heard:] == []
    assert not fits(backend, BOB, Settings(), "db")
    await hand_over(backend, BOB, Settings(), "db")
    assert "RESET" in server.heard[heard:]
    # The same database, as the reset forgets its collation.
    assert server.heard[-1] == "INIT_DB db"
    assert (backend.has_residue, backend.owner) == (False, BOB)
    backend.close()


async def test_one_that_asks_nothing_waits_for_no_answer_to_another(backend):
    """As on a connection that is closed meanwhile, where that answer never comes."""
    await hand_over(backend, ANN, Settings(), "db")
    backend.has_insert_id = True
    asked = take_diagnostics(backend, ANN)
    backend.has_insert_id = False
    assert (take_diagnostics(backend, None).is_known, asked.is_known) == (True, False)


async def test_a_variable_too_many_takes_a_reset_and_everything_is_said_again(server, backend):
    await hand_over(backend, ANN, names("latin1", "latin1_bin"), "db")
    await hand_over(backend, BOB, Settings([("time_zone", "UTC")]), "other")
    (connection,) = server.relays
    assert connection.heard[-4] == "RESET"
    assert "session_track" in connection.heard[-3]
    assert connection.heard[-2:] == ["SET @@session.time_zone = 'UTC'", "INIT_DB other"]
    assert {k: v for k, v in connection.variables.items() if "track" not in k} == {
        "autocommit": "ON",
        "time_zone": "UTC",
    }
    assert (backend.database, connection.database) == ("other", "other")


@pytest.mark.parametrize("step", ["RESET", "session_track", "time_zone", "INIT_DB"])
async def test_a_connection_that_could_not_be_made_anothers_is_closed(server, step):
    backend = await opened(server)
    await hand_over(backend, ANN, names("latin1", "latin1_bin"), "db")
    server.on(step, Error(1049, "no"))
    with pytest.raises(BackendError):
        await hand_over(backend, BOB, Settings([("time_zone", "UTC")]), "other")
    assert backend.is_closed


@pytest.fixture
async def backend(server):
    made = await opened(server)
    made.owner = Tenant()
    made.found_rows, made.row_count = 4, -1
    yield made
    made.close()


def adopted(backend, owner, settings=None, database="db"):
    return hand_over_now(backend, owner, settings or Settings(), database)


async def test_what_fits_changes_hands_and_the_server_hears_nothing(server, backend):
    heard = len(server.heard)
    before = backend.owner
    before.asks = True
    assert adopted(backend, BOB)
    assert backend.owner is BOB
    assert (before.left.found_rows, before.left.row_count) == (4, -1)
    assert before.left.is_known
    await backend.query(b"SELECT 1")
    assert server.heard[heard:] == ["SELECT 1"]


async def test_what_must_be_reset_or_set_is_not_adopted_without_waiting(backend):
    owner = backend.owner
    assert not adopted(backend, BOB, names("latin1", "latin1_bin"))
    assert not adopted(backend, BOB, database="other")
    backend.has_residue = True
    assert not adopted(backend, BOB)
    assert backend.owner is owner
    assert adopted(backend, owner)


async def test_an_insert_id_is_taken_away_in_front_of_the_next_ones_statement(server, backend):
    server.once("INSERT", Ok(last_insert_id=7))
    await backend.query(b"INSERT INTO t VALUES ()")
    backend.has_insert_id = True
    before, heard = backend.owner, len(server.heard)
    assert adopted(backend, BOB)
    assert not adopted(backend, ANN)  # the one before is not told yet
    await backend.query(b"SELECT 1")
    assert before.lost_ids == [7]
    assert ["LAST_INSERT_ID(0) LIMIT 1" in text for text in server.heard[heard:]] == [
        True,
        False,
    ]
    assert (backend.has_insert_id, backend.leaving) == (False, None)


async def test_warnings_are_taken_along(server, backend):
    server.on("SHOW WARNINGS", rows_of("careful"))
    backend.has_warnings = backend.owner.asks = True
    left = take_diagnostics(backend, backend.owner)
    assert not left.is_known
    await left.known()
    assert len(left.rows) == len(left.columns) == 1


@pytest.mark.parametrize("trouble", [Error(1317, "interrupted"), HangUp()])
async def test_a_server_that_does_not_tell_what_is_left_loses_the_connection(
    server, backend, trouble
):
    server.once("LAST_INSERT_ID", trouble)
    backend.has_insert_id = True
    before = backend.owner
    assert adopted(backend, BOB)
    await before.left.known()
    assert backend.is_closed
    assert before.lost_ids == []
