from dataclasses import replace
from types import SimpleNamespace

import pytest

from streamfrom.engine.errors import KeyspaceError, TargetError
from streamfrom.engine.sharding.vschema import parse_vschema
from streamfrom.proxy.errors import UnknownDatabase
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.keyspaces import HIGH_SHARD, LOW_SHARD, PLAIN, QUARTERS, SHARDED, VSCHEMA
from tests.proxy.sql.compilers import catalog_of


def catalog(**replicas):
    return catalog_of((SHARDED, PLAIN, QUARTERS), **replicas)


def test_a_system_schema_is_read_on_the_first_shard():
    made = catalog()
    view = made.system_view("mysql", made.view("commerce"))
    assert (view.shards, view.database, view.databases) == ((LOW_SHARD,), "mysql", {"mysql"})
    assert not view.is_sharded
    assert view.is_narrowed
    assert made.system_view("mysql", made.view("commerce:-80")) is view
    assert made.system_view("mysql", made.view("commerce:80-")).shards == (HIGH_SHARD,)
    made.replace(replace(SHARDED, vschema=parse_vschema(VSCHEMA, "commerce")))
    assert view.keyspace is not SHARDED


@pytest.mark.parametrize(
    ("target", "shards"),
    [
        ("commerce", (LOW_SHARD, HIGH_SHARD)),
        ("commerce:-80", (LOW_SHARD,)),
        ("commerce/80-", (HIGH_SHARD,)),
        ("commerce[80-]", (HIGH_SHARD,)),
        ("commerce[-]", (LOW_SHARD, HIGH_SHARD)),
        ("commerce[ff]", (HIGH_SHARD,)),
        ("commerce@primary", (LOW_SHARD, HIGH_SHARD)),
        ("commerce:-80@master", (LOW_SHARD,)),
        ("quarters[-80]", QUARTERS.shards[:2]),
        ("plain", PLAIN.shards),
    ],
)
def test_a_target_names_shards(target, shards):
    view = catalog().view(target)
    assert view.shards == shards
    assert view.is_narrowed == (len(shards) < len(view.keyspace.shards))
    assert view.is_sharded == (len(shards) > 1)
    assert [runtime.name for runtime in view.runtimes] == [shard.name for shard in shards]
    assert view.runtime(shards[-1]).name == shards[-1].name
    assert view.database == f"db_{view.keyspace.name}"


@pytest.mark.parametrize(
    ("target", "error", "sentence"),
    [
        ("nowhere", UnknownDatabase, "Unknown database 'nowhere'"),
        ("Commerce", UnknownDatabase, "Unknown database 'Commerce'"),
        ("", UnknownDatabase, "Unknown database ''"),
        ("commerce:-40", KeyspaceError, "shard '-40' not found"),
        ("commerce[-40]", KeyspaceError, "does not exactly match shards"),
        ("commerce@rdonly", Unsupported, "only primaries and replicas are served"),
        ("commerce:-80@primary|zone-1", Unsupported, "only primaries and replicas are served"),
        ("commerce@", TargetError, "empty tablet type"),
    ],
)
def test_a_target_that_is_not_there_is_an_error(target, error, sentence):
    with pytest.raises(error, match=sentence):
        catalog().view(target)


def with_replicas(*troubles):
    """Return a catalog whose shard commerce/-80 has replicas with these troubles."""
    low = [
        SimpleNamespace(name=f"low{i}", database="db", trouble=t, dsn=f"d{i}")
        for i, t in enumerate(troubles)
    ]
    high = [SimpleNamespace(name="high0", database="db", trouble=None, dsn="d")]
    return catalog(replicas={("commerce", "-80"): low, ("commerce", "80-"): high}), low


def test_replicas_that_are_well_are_read_from_in_turn():
    known, _ = with_replicas(None, "away", None)
    views = [known.view("commerce:-80@replica") for _ in range(4)]
    assert sorted(view.runtimes[0].name for view in views) == ["low0", "low0", "low2", "low2"]
    assert len(set(map(id, views))) == 2
    assert all(view.is_replica and not view.is_ailing for view in views)
    whole = known.view("commerce@replica")
    assert [runtime.name for runtime in whole.runtimes][1] == "high0"
    assert not known.view("commerce").is_replica
