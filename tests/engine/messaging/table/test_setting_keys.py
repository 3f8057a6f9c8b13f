import pytest

from streamfrom.engine.messaging.table import table_settings
from streamfrom.engine.messaging.table.setting_keys import KEYS


REQUIRED = {
    "vt_ack_wait": "30",
    "vt_purge_after": "60",
    "vt_batch_size": "10",
    "vt_cache_size": "100",
    "vt_poller_interval": "5",
}


def comment(settings: dict[str, str]) -> str:
    return ",".join(["vitess_message", *(f"{key}={value}" for key, value in settings.items())])


def test_the_keys_of_a_table_comment_have_the_defaults_that_the_code_says():
    table = {key: text.split(" | ")[1] for key, text in KEYS.items()}
    assert {key for key, default in table.items() if default == "required"} == set(REQUIRED)
    for key in REQUIRED:
        others = {name: value for name, value in REQUIRED.items() if name != key}
        with pytest.raises(table_settings.CommentError, match=key):
            table_settings.parse_comment(comment(others))
    found = table_settings.parse_comment(comment(REQUIRED))
    assert (table["vt_min_backoff"], found.min_backoff_ns) == ("`vt_ack_wait`", 30 * 10**9)
    assert (table["vt_max_backoff"], found.max_backoff_ns) == ("none", 0)
    assert (table["vt_order"], found.newest) == ("`oldest`", False)
