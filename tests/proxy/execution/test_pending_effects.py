import pytest

from streamfrom.proxy.execution.pending_effects import PendingEffects
from streamfrom.sqlparse_ext.writes.hidden_writes import NOTHING_HIDDEN
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


ACK = Effect(EffectKind.ACK, (1,))
NEW = Effect(EffectKind.NEW, (2,))


@pytest.fixture
def told():
    return []


@pytest.fixture
def effects(told):
    return PendingEffects(lambda *args: told.append(args), lambda _shard: NOTHING_HIDDEN)


def test_effects_are_told_once_table_by_table_and_never_behind_a_rollback(told, effects):
    for shard, effect in (("low", ACK), ("high", NEW), ("low", NEW)):
        effects.add(shard, "a", effect)
    effects.committed()
    effects.committed()
    assert told == [("low", "a", [ACK, NEW]), ("high", "a", [NEW])]
    effects.add("low", "a", ACK)
    effects.rolled_back()
    effects.committed()
    assert len(told) == 2


def test_behind_a_savepoint_only_the_tables_are_known(told, effects):
    for effect in (ACK, NEW):
        effects.add("low", "a", effect)
    effects.partly_rolled_back()
    effects.committed()
    assert told == [("low", "a", [Effect(EffectKind.UNKNOWN, None)])]
