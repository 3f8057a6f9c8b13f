from dataclasses import replace

import pytest

from streamfrom.engine.sharding.vschema import parse_vschema
from streamfrom.sqlparse_ext.errors import StreamfromError
from tests.cases import cases
from tests.proxy.keyspaces import HIGH_SHARD, LOW_SHARD, PLAIN, QUARTERS, SHARDED, VSCHEMA
from tests.proxy.sql.compilers import FakeRuntime, catalog_of


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


@cases(target=str, names=str.split)
def test_a_target_names_shards(target, names):
    view = catalog().view(target)
    assert [shard.name for shard in view.shards] == names
    assert view.is_narrowed == (len(names) < len(view.keyspace.shards))
    assert view.is_sharded == (len(names) > 1)
    assert [runtime.name for runtime in view.runtimes] == names
    assert view.runtime(view.shards[-1]).name == names[-1]
    assert view.database == f"db_{view.keyspace.name}"


@cases(target=str, error=str, sentence=str)
def test_a_target_that_is_not_there_is_an_error(target, error, sentence):
    with pytest.raises(StreamfromError, match=sentence) as refused:
        catalog().view(target)
    assert refused.typename == error


def with_replicas(*troubles):
    """Return a catalog whose shard commerce/-80 has replicas with these troubles."""
    low = [
        FakeRuntime(name=f"low{i}", database="db", trouble=t, dsn=f"d{i}")
        for i, t in enumerate(troubles)
    ]
    high = [FakeRuntime(name="high0", database="db", trouble=None, dsn="d")]
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
