"""Keys of former configurations that said what a user may do: errors that name the GRANT to use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.config.dsn import Dsn
    from streamfrom.proxy.config.toml_values import ConfigError, TomlTable


_WHY: Final = "the server's grants decide what the user's own account may do"
_GRANTS: Final = {
    "readwrite": "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP ON `database`.*",
    "readonly": "SELECT ON `database`.*",
    "producer": "INSERT (columns) ON `database`.`queue`",
    "consumer": "SELECT (columns), UPDATE (`time_next`, `time_acked`) ON `database`.`queue`",
}
# What prints the statement in full.
_COMMANDS: Final = {"readonly": "reader", "producer": "producer", "consumer": "consumer"}


def refuse_walls(table: TomlTable, user: str) -> None:
    """Raise ConfigError for a former role of *user*, or a list of what it may see."""
    who = quote_identifier(user)
    role = table.raw("role", "", "a role")
    if isinstance(role, str) and role in _GRANTS:
        command = _COMMANDS.get(role)
        printed = "" if command is None else f" (streamfrom grants --for {command} prints it)"
        raise table.fault(
            "role",
            f'expected "user" or "admin": "{role}" is gone, {_WHY}; leave role out, and run at'
            f" each shard: GRANT {_GRANTS[role]} TO {who}{printed}",
        )
    for key, place in (("keyspaces", "`database`.*"), ("tables", "`database`.`table`")):
        if table.has_former(key):
            raise _gone(
                table, key, f"leave it out, and run for each: GRANT SELECT ON {place} TO {who}"
            )


def refuse_readonly(table: TomlTable, primary: Dsn) -> None:
    """Raise ConfigError where a shard has an account for readers."""
    if table.has_former("readonly"):
        place = f"{quote_identifier(primary.database)}.*"
        raise _gone(
            table, "readonly", f"let each reader log in, and run: GRANT SELECT ON {place} TO it"
        )


def _gone(table: TomlTable, key: str, instead: str) -> ConfigError:
    return table.fault(key, f"no key any more: {_WHY}; {instead}")
