import pytest

from proxy.backends.opening import open_backend
from proxy.backends.settings import Settings, names
from proxy.backends.tenancy import adopt, fits
from proxy.errors import BackendError
from proxy.wire.attributes import Attribute
from tests.proxy.fake_server import (
    Error,
)


class Tenant:
    """A session, as far as a connection knows it."""

    settings = Settings()
    variant = 0
    attributes: tuple[Attribute, ...] = ()

    def evicted(self, backend, last_insert_id):
        pass

    def leaves(self, backend, left):
        return False


ANN, BOB = Tenant(), Tenant()


async def opened(server, database="db", variant=0, **dsn):
    return await open_backend("ks", "-", server.dsn(**dsn), database=database, variant=variant)


async def test_the_same_owner_finds_everything_as_it_left_it(server):
    backend = await opened(server)
    await adopt(backend, ANN, Settings(), "db")
    backend.has_residue = True
    heard = len(server.heard)
    await adopt(backend, ANN, Settings(), "db")
    assert server.heard[heard:] == []


async def test_variables_are_only_added_without_a_reset(server):
    backend = await opened(server)
    await adopt(backend, ANN, names("latin1", "latin1_bin"), "db")
    heard = len(server.heard)
    more = names("latin1", "latin1_bin").with_changes([("time_zone", "UTC")])
    await adopt(backend, ANN, more, "db")
    assert server.heard[heard:] == ["SET @@session.time_zone = 'UTC'"]
    assert backend.settings is more
    backend.close()


async def test_a_variable_too_many_takes_a_reset_and_everything_is_said_again(server):
    backend = await opened(server)
    await adopt(backend, ANN, names("latin1", "latin1_bin"), "db")
    await adopt(backend, BOB, Settings([("time_zone", "UTC")]), "other")
    (connection,) = server.relays
    assert connection.heard[-4] == "RESET"
    assert "session_track" in connection.heard[-3]
    assert connection.heard[-2:] == ["SET @@session.time_zone = 'UTC'", "INIT_DB other"]
    assert {k: v for k, v in connection.variables.items() if "track" not in k} == {
        "time_zone": "UTC"
    }
    assert (backend.database, connection.database) == ("other", "other")
    backend.close()


async def test_residue_is_for_its_owner_alone(server):
    backend = await opened(server)
    await adopt(backend, ANN, Settings(), "db")
    backend.has_residue = True
    assert fits(backend, ANN, Settings(), "db")
    assert not fits(backend, BOB, Settings(), "db")
    await adopt(backend, BOB, Settings(), "db")
    assert "RESET" in server.heard
    assert not backend.has_residue
    assert backend.owner is BOB
    backend.close()


@pytest.mark.parametrize("step", ["RESET", "session_track", "time_zone", "INIT_DB"])
async def test_a_connection_that_could_not_be_made_anothers_is_closed(server, step):
    backend = await opened(server)
    await adopt(backend, ANN, names("latin1", "latin1_bin"), "db")
    server.on(step, Error(1049, "no"))
    with pytest.raises(BackendError):
        await adopt(backend, BOB, Settings([("time_zone", "UTC")]), "other")
    assert backend.is_closed
