"""Who asks about sessions: a user may list and end those of its own, one of role admin all. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from streamfrom.proxy.config.file import Role, User


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks about sessions.

    user: the name.
    is_admin: its role is admin.
    """

    user: str
    is_admin: bool

    @classmethod
    def of(cls, user: User) -> Asker:
        """Return *user* as one who asks."""
        return cls(user.name, user.role is Role.ADMIN)

    def may_see(self, user: User | None) -> bool:
        """Return whether a session of *user* may be listed and ended; None: it has not logged in."""
        # By name: the user may have been read again since one of them logged in.
        return user is not None and (self.is_admin or user.name == self.user)
