"""Who is logged in to the status page, and until when."""

from itertools import count

import pytest

from streamfrom.proxy.admin.admin_gate import IDLE_S, LIFE_S, SESSIONS_MAX, WebSessions
from streamfrom.proxy.wire.login.auth import Credentials


ACCOUNT = Credentials.from_password("app", "")


@pytest.fixture
def sessions():
    numbers = count()
    return WebSessions(lambda: f"secret {next(numbers)}")


def test_a_session_is_found_by_its_token_alone_and_shares_no_secret(sessions):
    token = sessions.open("app", ACCOUNT, 0.0)
    found = sessions.find(token, 1.0)
    assert (found.user, found.account) == ("app", ACCOUNT)
    assert found.csrf not in ("", token)
    assert sessions.find("", 1.0) is None
    assert sessions.find(found.csrf, 1.0) is None
    assert sessions.find(sessions.open("app", ACCOUNT, 0.0), 0.0).csrf != found.csrf


def test_it_ends_when_nobody_uses_it_after_its_life_and_by_logging_out(sessions):
    token, used, closed = (sessions.open("app", ACCOUNT, 0.0) for _ in range(3))
    for _ in range(2):
        sessions.close(closed)
    assert sessions.find(closed, 0.0) is None
    assert sessions.find(token, IDLE_S)
    assert sessions.find(token, 2 * IDLE_S)
    assert sessions.find(token, 3 * IDLE_S + 1) is None
    for moment_s in range(0, int(LIFE_S), int(IDLE_S)):
        assert sessions.find(used, float(moment_s))
    assert sessions.find(used, LIFE_S)
    assert sessions.find(used, LIFE_S + 1) is None
    assert len(sessions) == 0


def test_of_too_many_the_longest_unused_ends(sessions):
    first, second = (sessions.open("app", ACCOUNT, 0.0) for _ in range(2))
    assert sessions.find(first, 1.0)
    for _ in range(SESSIONS_MAX - 1):
        sessions.open("app", ACCOUNT, 1.0)
    assert len(sessions) == SESSIONS_MAX
    assert sessions.find(second, 1.0) is None
    assert sessions.find(first, 1.0)
