"""The choice as a table: idle connections, in the order of their last use, and what a session of `ann` gets."""

from types import SimpleNamespace
from typing import Any

from streamfrom.proxy.backends.account import Account
from streamfrom.proxy.backends.pooling.pool_queue import Choice, MakeRoom, choose
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.config.toml_values import Secret
from tests.cases import cases


SETTINGS = Settings()
ANN, BOB = (Account(name, Secret("")) for name in ("ann", "bob"))
OWNER: Any = SimpleNamespace(account=ANN, variant=0, settings=SETTINGS)
OTHER: Any = SimpleNamespace(account=ANN, variant=0, settings=SETTINGS)


def idle(**fields):
    defaults = {
        "account": ANN,
        "variant": 0,
        "database": "db",
        "owner": None,
        "settings": SETTINGS,
    }
    defaults |= {"is_spent": False, "has_residue": False, "has_insert_id": False}
    return SimpleNamespace(**(defaults | fields))


CONNECTIONS: dict[str, Any] = {
    "own": idle(owner=OWNER),
    "free": idle(),
    "stained": idle(has_residue=True),
    "taken": idle(owner=OTHER),
    "spent": idle(owner=OTHER, is_spent=True),
    "variant": idle(variant=2),
    "bobs": idle(account=BOB),
}


@cases(there=str, flags=str, expected=str)
def test_a_choice(there, flags, expected):
    found = choose(
        [CONNECTIONS[name] for name in there.split()],
        OWNER,
        "db",
        has_room="f" not in flags,
        may_open="l" not in flags,
        may_displace="p" not in flags,
    )
    names = {id(connection): name for name, connection in CONNECTIONS.items()}
    if isinstance(found, Choice):
        assert found.name == expected
    elif isinstance(found, MakeRoom):
        assert f"room: {names[id(found.victim)]}" == expected
    else:
        assert names[id(found)] == expected


def test_only_a_new_login_leaves_a_database_for_none():
    found = choose([idle()], OWNER, None, has_room=False, may_open=True, may_displace=True)
    assert isinstance(found, MakeRoom)
    without = idle(database=None)
    assert (
        choose([without], OWNER, None, has_room=False, may_open=True, may_displace=True)
        is without
    )
