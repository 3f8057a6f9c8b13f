"""`python -m tests.integration.unguarded serve …`: the proxy with every check of a user switched off.

Whoever logs in may do everything as far as the proxy is concerned. What is refused then, the
account does that the session's statements run under.
"""

from dataclasses import replace

from streamfrom.proxy.cli import main
from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.sessions import session_factory
from streamfrom.proxy.sql.privileges import Privileges


def unguarded(user: User, host: str, *_accounts: object) -> Privileges:
    """Return the guard of a user who may do everything, to the servers' accounts too."""
    return Privileges(replace(user, role=Role.READWRITE, keyspaces=None, tables=None), host)


if __name__ == "__main__":
    vars(session_factory)["Privileges"] = unguarded
    raise SystemExit(main())
