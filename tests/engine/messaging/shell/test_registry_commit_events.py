import pytest

from streamfrom.engine.messaging.dispatch.events import Acked, AckedUnnamed, Changed, Touched
from streamfrom.engine.messaging.shell.registry import NAMED_MAX, commit_event
from streamfrom.sqlparse_ext.writes.message_effects import Effect, EffectKind


@pytest.mark.parametrize(
    ("kind", "few", "many"),
    [
        (EffectKind.ACK, Acked("0", (b"0", b"1")), AckedUnnamed("0")),
        (EffectKind.REMOVE, Acked("0", (b"0", b"1")), AckedUnnamed("0")),
        (EffectKind.RESCHEDULE, Changed("0", (b"0", b"1")), Changed("0", None)),
        (EffectKind.TOUCH, Touched("0", (b"0", b"1")), Touched("0", ())),
    ],
)
def test_so_many_messages_that_they_would_hold_up_everybody_are_not_named(kind, few, many):
    assert commit_event("0", Effect(kind, (0, 1))) == few
    assert commit_event("0", Effect(kind, tuple(range(NAMED_MAX + 1)))) == many
