"""Who is logged in to the status page: tokens of cookies, with an end. Pure: time and dice go in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final


if TYPE_CHECKING:
    from streamfrom.proxy.wire.login.auth import Credentials


# An open page asks each second, so this long after it was closed.
IDLE_S: Final = 1800.0
# A page that stays open all night is asked for the password again in the morning.
LIFE_S: Final = 12 * 3600.0
SESSIONS_MAX: Final = 1000


@dataclass(slots=True)
class WebSession:
    """One login."""

    user: str
    # What its password was judged by; another one has taken its place once that was changed.
    account: Credentials
    csrf: str  # what each POST must repeat, which only a page of this origin can read
    opened_s: float
    used_s: float


class WebSessions:
    """All logins, by the token of their cookie. *draw* returns a fresh secret at each call."""

    def __init__(self, draw: Callable[[], str]) -> None:
        self._draw = draw
        # The one that was used longest ago first.
        self._sessions: OrderedDict[str, WebSession] = OrderedDict()

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._sessions)

    def open(self, user: str, account: Credentials, now_s: float) -> str:
        """Begin a session and return its token; beyond SESSIONS_MAX the longest unused one ends."""
        token = self._draw()
        self._sessions[token] = WebSession(user, account, self._draw(), now_s, now_s)
        if len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return token

    def find(self, token: str, now_s: float) -> WebSession | None:
        """Return the session of *token*, which counts as used now; None where it has ended."""
        session = self._sessions.get(token)
        if session is None:
            return None
        if now_s - session.used_s > IDLE_S or now_s - session.opened_s > LIFE_S:
            del self._sessions[token]
            return None
        session.used_s = now_s
        self._sessions.move_to_end(token)
        return session

    def close(self, token: str) -> None:
        """End a session, if there is one."""
        self._sessions.pop(token, None)
