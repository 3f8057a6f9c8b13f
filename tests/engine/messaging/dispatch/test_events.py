from typing import get_args

from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    Action,
    Attached,
    Detached,
    Due,
    Event,
    Left,
    ProgressedElsewhere,
    ReceiverReady,
    Reconfigured,
    ShareGiven,
    TableEnded,
    TableEvent,
    Tick,
    TryAgain,
    WaitOver,
)


def test_events_are_values():
    assert Due("0", ()) == Due("0", ())
    assert len({Acked("0", ()), Acked("0", ())}) == 1


def test_what_is_not_about_one_shard_is_known():
    """Every other event has a shard, and only that shard is brought to rest after it."""
    without = {event for event in get_args(Event) if not hasattr(event, "shard")}
    expected = {
        Attached,
        Detached,
        Left,
        ProgressedElsewhere,
        ReceiverReady,
        Reconfigured,
        ShareGiven,
        TableEnded,
        Tick,
        TryAgain,
        WaitOver,
    }
    assert without == expected


def test_nothing_is_event_and_action_at_once():
    assert not set(get_args(Event)) & set(get_args(Action))


def test_what_a_commit_does_are_events_of_the_scheduler_about_one_shard():
    assert set(get_args(TableEvent)) < set(get_args(Event))
    assert all("shard" in event.__slots__ for event in get_args(TableEvent))
