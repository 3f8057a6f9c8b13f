"""Immutable values that are made often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make *cls* a dataclass with slots whose attributes are never assigned to.

    The type checker enforces that. With `frozen=True` CPython 3.11 does as well, but needs three times as long to make an
    object: with 15 for each message that was 3 % of the proxy's time.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
