from typing import get_args

from streamfrom.engine.messaging.dispatch.events import Action, Event


def test_nothing_is_event_and_action_at_once():
    assert not set(get_args(Event)) & set(get_args(Action))
