"""`python -m tests.integration.unguarded serve …`: the proxy with every check of a user switched off.

Whoever logs in may do everything as far as the proxy is concerned. What is refused then, the
account does that the session's statements run under.
"""

from dataclasses import replace

from streamfrom.proxy.cli import main
from streamfrom.proxy.config.file import Role, User
from streamfrom.proxy.sessions import parts
from streamfrom.proxy.sql.guard import Guard


def unguarded(user: User, host: str, *_accounts: object) -> Guard:
    """Return the guard of a user who may do everything, to the servers' accounts too."""
    return Guard(replace(user, role=Role.READWRITE, keyspaces=None, tables=None), host)


if __name__ == "__main__":
    vars(parts)["Guard"] = unguarded
    raise SystemExit(main())
