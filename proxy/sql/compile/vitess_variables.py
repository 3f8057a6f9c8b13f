"""Vitess's own session variables: `workload`, `transaction_mode` and `query_timeout`.

No server knows these variables. `workload` is kept and shown, and has no effect. A `transaction_mode` is accepted where the
session really has it. `query_timeout` is accepted and has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.config.file import TransactionMode
from streamfrom.proxy.errors import SessionVariable, WrongVariableValue
from streamfrom.sqlparse_ext.statements import SetItem, SetKind, SetScope, Shape, Statement
from streamfrom.sqlparse_ext.text.identifiers import literal


if TYPE_CHECKING:
    from streamfrom.proxy.execution.session_state import SessionState


_NAMES: Final = frozenset({"workload", "transaction_mode", "query_timeout"})
_WORKLOADS: Final = ("OLTP", "OLAP")


def sets_vitess_variables(statement: Statement) -> bool:
    """True for a SET of nothing but variables that only Vitess has."""
    items = statement.shape.set
    return bool(items) and all(map(_is_vitesss, items))


def _is_vitesss(item: SetItem) -> bool:
    return item.kind is SetKind.SYSTEM and item.name in _NAMES


def set_vitess_variables(
    state: SessionState, own_mode: TransactionMode, statement: Statement
) -> None:
    """Carry out a statement that `sets_vitess_variables`.

    own_mode: the configuration's `transaction_mode`, which a session may only narrow.

    Raises SessionVariable for SET GLOBAL, WrongVariableValue for a value that the session cannot have; nothing is set then.
    """
    workload, is_single = state.workload, state.keeps_to_one_shard
    for item in statement.shape.set:
        if item.scope is not SetScope.SESSION:
            raise SessionVariable(item.name)
        value = (statement.text(item.value) or "NULL").upper()
        if item.name == "workload":
            workload = _WORKLOADS[0] if value == "DEFAULT" else value
            if workload not in _WORKLOADS:
                raise WrongVariableValue(
                    item.name, value, "'oltp' and 'olap' are known, and served alike"
                )
        elif item.name == "transaction_mode":
            mode = own_mode.upper() if value == "DEFAULT" else value
            if mode not in (own_mode.upper(), TransactionMode.SINGLE.upper()):
                raise WrongVariableValue(
                    item.name,
                    value,
                    f"the proxy's is \"{own_mode}\", and a session may have that or 'single'",
                )
            is_single = mode == TransactionMode.SINGLE.upper()
    state.workload, state.keeps_to_one_shard = workload, is_single


def vitess_variables(
    state: SessionState, own_mode: TransactionMode, shape: Shape
) -> Mapping[str, bytes]:
    """Return the values of `@@workload` and `@@transaction_mode`, as SQL, in Vitess's capitals.

    Return an empty mapping for a SET of one of them, where such a name is not its value.
    """
    if any(map(_is_vitesss, shape.set)):
        return {}
    mode = TransactionMode.SINGLE if state.keeps_to_one_shard else own_mode
    return {
        "@@WORKLOAD": literal(state.workload.encode()),
        "@@TRANSACTION_MODE": literal(mode.upper().encode()),
    }
