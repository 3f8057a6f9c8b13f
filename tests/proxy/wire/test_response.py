from proxy.wire.response import Answer, Relay, Resequencer, relay_for
from tests.proxy.wire.streams import MODERN, MODERN_WITHOUT_TRACK, OLD


def test_the_cheapest_reader_is_chosen():
    assert isinstance(relay_for(MODERN), Relay)
    assert isinstance(relay_for(MODERN_WITHOUT_TRACK), Relay)
    assert isinstance(relay_for(OLD), Resequencer)
    assert isinstance(relay_for(MODERN, sequence=2), Resequencer)


def test_options_reach_the_reader():
    text = b"\x09\x00\x00\x01Uptime: 5"
    for capabilities in (MODERN, OLD):
        reader = relay_for(capabilities, answer=Answer.TEXT)
        assert reader.feed(text) == text
        assert reader.done
