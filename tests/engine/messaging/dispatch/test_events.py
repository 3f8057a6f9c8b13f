from typing import get_args

from streamfrom.engine.messaging.dispatch.events import Action, Event, TableEvent


def test_nothing_is_event_and_action_at_once():
    assert not set(get_args(Event)) & set(get_args(Action))


def test_what_a_commit_does_are_events_of_the_scheduler_about_one_shard():
    assert set(get_args(TableEvent)) < set(get_args(Event))
    assert all("shard" in event.__slots__ for event in get_args(TableEvent))
