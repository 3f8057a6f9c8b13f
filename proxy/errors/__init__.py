"""Every refusal of the proxy itself, as one tree; code, SQLSTATE and remedy are with each class.

A module of this package holds the errors of one kind; all are imported from here. `docs/sql/errors.md` lists them.

Codes are MySQL's own, with its own text if it has one for the case, so that drivers
react as they do to a server.
https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html
"""

# ruff: noqa: F403 - every class of these modules is public
from __future__ import annotations

from streamfrom.proxy.errors.access_errors import *
from streamfrom.proxy.errors.base import *
from streamfrom.proxy.errors.shard_errors import *
from streamfrom.proxy.errors.statement_errors import *
from streamfrom.proxy.errors.wire_errors import *
