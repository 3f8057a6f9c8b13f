from streamfrom.engine.messaging.table.setting_keys import KEYS
from streamfrom.engine.messaging.table.table_settings import parse_comment
from tests.engine.messaging.table.test_table_settings import REQUIRED, comment


def test_the_keys_of_a_table_comment_have_the_defaults_that_the_code_says():
    table = {key: text.split(" | ")[1] for key, text in KEYS.items()}
    assert {key for key, default in table.items() if default == "required"} == set(REQUIRED)
    found = parse_comment(comment())
    assert (table["vt_min_backoff"], found.min_backoff_ns) == ("`vt_ack_wait`", 30 * 10**9)
    assert (table["vt_max_backoff"], found.max_backoff_ns) == ("none", 0)
    assert (table["vt_order"], found.newest) == ("`oldest`", False)
