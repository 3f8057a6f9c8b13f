"""Statements that would change or show the proxies' own accounts on the servers. Pure.

The proxy's accounts live in its configuration; on the servers every statement runs under the account
of a DSN. No user may change that account, however the statement names it, or read the hash of its password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import Kind, SetKind, Uses
from streamfrom.sqlparse_ext.text.tokens import Token, statement_tokens, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape, Statement


_WHY: Final = "accounts live in the proxy's configuration"
# SET PASSWORD, SET ROLE, SET DEFAULT ROLE and SET RESOURCE GROUP: no variable has these names. A server runs the text
# of the init_ variables itself.
_SET_OF_THE_ACCOUNT: Final = frozenset(
    {"password", "role", "default", "resource"} | {"init_connect", "init_slave", "init_replica"}
)
_ACCOUNT_OBJECTS: Final = frozenset({"USER", "ROLE"})
_ACCOUNT_VERBS: Final = frozenset({"CREATE", "ALTER", "DROP", "RENAME"})
_RIGHTS: Final = frozenset({"GRANT", "REVOKE"})
_OPTIONS: Final = frozenset({"OR", "REPLACE"})
_WRITES: Final = frozenset(
    {Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.DDL, Kind.LOAD, Kind.OTHER}
    | {Kind.PREPARE, Kind.LOCK}
)
GRANT_TABLES: Final = frozenset(
    {"user", "global_priv", "db", "tables_priv", "columns_priv", "procs_priv", "proxies_priv"}
    | {
        "roles_mapping",
        "default_roles",
        "role_edges",
        "global_grants",
        "password_history",
        "host",
    }
)
# These hold hashes of passwords, by which a guessed password can be tried without the server.
_HASH_TABLES: Final = frozenset({"user", "global_priv", "password_history"})
_HASH_COLUMNS: Final = frozenset(
    {"authentication_string", "password", "priv", "user_attributes"}
)
_PROGRAMS: Final = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"})
# Words between two statements of a body, and words after which UPDATE begins no statement.
_BORDERS: Final = frozenset({";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "ROW"})
_BEFORE_NO_DYNAMIC_SQL: Final = frozenset({"DEALLOCATE", "DROP", "XA"})
_BEFORE_NO_UPDATE: Final = frozenset({"BEFORE", "AFTER", "OR", "FOR", "ON"})
_NAMES_WITHOUT_PARENTHESES: Final = frozenset({"CURRENT_USER", "CURRENT_ROLE"})
# Words in front of the name of an account.
_BEFORE_NAME: Final = frozenset({"USER", "ROLE", "EXISTS", "TO", ","})
# Procedures of the servers that run a text that they are given, or make views of all tables.
_RUNS_TEXTS: Final = frozenset(
    {"execute_prepared_stmt", "create_synonym_db", "statement_performance_analyzer"}
    | {"diagnostics", "table_exists", "addgeometrycolumn", "dropgeometrycolumn"}
)
_SELVES: Final = frozenset({"USER", "SESSION_USER", "SYSTEM_USER"})


def may_reach_accounts(shape: Shape, schema: str | None) -> bool:
    """Tell whether `Privileges.check_statement` may refuse a read or write of rows or a SHOW to all users."""
    if shape.kind is Kind.SHOW:
        return shape.words[:1] == ("GRANTS",) or shape.words[:2] == ("CREATE", "USER")
    return _names(shape, schema, GRANT_TABLES)


def may_show_hashes(shape: Shape, schema: str | None) -> bool:
    """Tell whether a statement that writes nothing reads hashes of passwords.

    A column is read by its name, by `*`, or by TABLE. The caller asks about the statement in EXPLAIN separately.
    SHOW COLUMNS shows no row.
    """
    is_bare = shape.kind is Kind.SHOW and b"SELECT" not in shape.template.upper()
    if is_bare or shape.kind is Kind.EXPLAIN or not _names(shape, schema, _HASH_TABLES):
        return False
    tokens = statement_tokens(shape.template)
    return any(_reads_hash(tokens, place, shape.template) for place in range(len(tokens)))


def _reads_hash(tokens: list[Token], place: int, template: bytes) -> bool:
    token = tokens[place]
    if token.key == "*":
        is_count = [each.key for each in tokens[place - 1 : place + 2]] == ["(", "*", ")"]
        return not is_count
    if token.key == "TABLE":
        return True
    return token.is_name and unquote(token, template).lower() in _HASH_COLUMNS


def check_accounts(statement: Statement, accounts: frozenset[str], schema: str | None) -> None:
    """Raise Unsupported for a statement that would change or show one of *accounts*, in lower case.

    schema: what unqualified names mean.
    """
    shape = statement.shape
    for item in shape.set:
        if item.kind is not SetKind.USER and item.name.split(".")[0] in _SET_OF_THE_ACCOUNT:
            raise Unsupported(f"SET {item.name.upper()}: {_WHY}")
    if shape.kind in _WRITES and _names(shape, schema, GRANT_TABLES):
        raise Unsupported(f"{shape.verb} of the tables of rights: {_WHY}")
    if shape.kind in (Kind.SELECT, Kind.STREAM, Kind.SET):
        return  # the statement after SET STATEMENT … FOR is checked separately
    tokens = statement_tokens(shape.template)
    keys = [token.key for token in tokens]
    if shape.kind is Kind.SHOW:
        if shape.words[:2] == ("CREATE", "USER") or (
            shape.words[:1] == ("GRANTS",) and "FOR" in shape.words
        ):
            is_own = len(keys) == 3 or any(key in _NAMES_WITHOUT_PARENTHESES for key in keys)
            if shape.words[0] == "CREATE" and is_own:
                raise Unsupported(f"SHOW CREATE USER of CURRENT_USER: {_WHY}")
            if "CURRENT_USER" not in keys:  # the proxy itself answers it
                _check_names(statement, tokens, accounts)
        return
    _check_calls(keys)
    if shape.verb == "FLUSH" and "PRIVILEGES" in keys:
        raise Unsupported(f"FLUSH PRIVILEGES: {_WHY}")
    if shape.verb in _RIGHTS:
        names = tokens
        if "PROXY" not in keys:
            border = "TO" if shape.verb == "GRANT" else "FROM"
            names = tokens[keys.index(border) :] if border in keys else tokens
        _check_names(statement, names, accounts)
    elif shape.verb in _ACCOUNT_VERBS and _is_account_object(keys, 1):
        _check_names(statement, tokens, accounts)
    elif _is_program(statement, keys):
        _check_body(keys, statement)


def _check_calls(keys: list[str]) -> None:
    for place, key in enumerate(keys):
        if key == "CALL":
            name = keys[place + 3 : place + 4] if keys[place + 2 : place + 3] == ["."] else []
            for called in name or keys[place + 1 : place + 2]:
                if called.strip('`"').lower() in _RUNS_TEXTS:
                    raise Unsupported(f"CALL of {called}, which runs what nobody read: {_WHY}")


def _is_account_object(keys: list[str], place: int) -> bool:
    while keys[place : place + 1] and keys[place] in _OPTIONS:
        place += 1
    return keys[place : place + 1] != [] and keys[place] in _ACCOUNT_OBJECTS


def _check_names(statement: Statement, tokens: list[Token], accounts: frozenset[str]) -> None:
    """Raise Unsupported where one of *tokens* is one of *accounts*, or is CURRENT_USER or CURRENT_ROLE."""
    template, verb = statement.shape.template, statement.shape.verb
    for place, token in enumerate(tokens):
        after = tokens[place + 1].key if place + 1 < len(tokens) else ""
        if token.key in _NAMES_WITHOUT_PARENTHESES or (token.key in _SELVES and after == "("):
            raise Unsupported(f"{verb} of CURRENT_USER() or USER(): {_WHY}")
        if token.slot is not None:
            (value,) = statement.values((token.slot,)) or (None,)
            if not isinstance(value, bytes):
                continue
            name = value.decode("utf-8", "replace")
        elif token.is_name:
            name = unquote(token, template)
        else:
            continue
        # Servers keep names without trailing blanks.
        name = name.rstrip(" ")
        if not name and verb != "DROP" and tokens[place - 1].key in _BEFORE_NAME:
            # It comes before accounts with a name whose host is less exact.
            raise Unsupported(f"{verb} of an account without a name: {_WHY}")
        if name.lower() in accounts:
            raise Unsupported(f"{verb} of the account of a server: {_WHY}")


def _names(shape: Shape, schema: str | None, tables: frozenset[str]) -> bool:
    """Return whether a statement names one of *tables* of the schema mysql."""
    template = shape.template
    if (schema or "").lower() != "mysql" and b"mysql" not in template.lower():
        return False
    tokens = statement_tokens(template)
    for place, token in enumerate(tokens):
        if not token.is_name or unquote(token, template).lower() not in tables:
            continue
        is_qualified = place > 1 and tokens[place - 1].key == "."
        home = unquote(tokens[place - 2], template) if is_qualified else schema or ""
        if home.lower() == "mysql":
            return True
    return False


def _is_program(statement: Statement, keys: list[str]) -> bool:
    shape = statement.shape
    if shape.kind is Kind.DDL and shape.verb in ("CREATE", "ALTER"):
        return any(key in _PROGRAMS for key in keys)
    # BEGIN NOT ATOMIC, IF, LOOP and other compound statements.
    return shape.kind in (Kind.OTHER, Kind.BEGIN) and bool(shape.uses & Uses.UNPARSED)


def _check_body(keys: list[str], statement: Statement) -> None:
    """Raise Unsupported for a body that may reach the account: its text does not show all it runs."""
    in_update = in_set = False
    for place, key in enumerate(keys):
        before = keys[place - 1] if place else ""
        if key in _BORDERS:
            in_update = in_set = False
        elif key == "UPDATE":
            in_update = before not in _BEFORE_NO_UPDATE
        elif key == "SET":
            in_set = not in_update
        if (
            key in _RIGHTS
            or (key == "GRANTS" and before == "SHOW")
            or (key in ("PREPARE", "EXECUTE") and before not in _BEFORE_NO_DYNAMIC_SQL)
            or (in_set and key.strip('`"').upper() == "PASSWORD")
            or (in_set and key in ("ROLE", "DEFAULT") and before in ("SET", ","))
            or (key in _ACCOUNT_OBJECTS and before in (*_ACCOUNT_VERBS, "REPLACE"))
            or (key == "PRIVILEGES" and "FLUSH" in keys)
        ):
            raise Unsupported(
                f"{key} in the body of a stored program or a compound statement: {_WHY}"
            )
    if any(key.strip('`"').lower() == "mysql" for key in keys):
        raise Unsupported(
            f"mysql in the body of a stored program or a compound statement: {_WHY}"
        )
