"""Which values of aggregates' DISTINCT arguments are new in a group, for several lists of them.

`COUNT(DISTINCT a), SUM(DISTINCT b)` has two lists of arguments, a and b. The rows of a group come in the order
of all arguments. The lists that lead this order are new where they differ from the row before; the
values of the others are remembered until the group is complete, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.errors import DistinctTooLarge


if TYPE_CHECKING:
    from streamfrom.proxy.merge.ordered_merge import SortKey


NO_LIST: Final = -1  # of an aggregate without DISTINCT

# What a remembered value costs besides its bytes: two tuples, an object and its place in a set.
_VALUE_BYTES: Final = 250
_NULL: Final = (0,)


class Distinct:
    """The lists of one SELECT.

    width: the number of key components that are the group's; the arguments follow them.
    lists: the arguments of each list, as places among all arguments.
    list_of: the list of an output value, by its place; those without DISTINCT are left out.
    memory_bytes: the limit for the remembered values of a group.
    """

    def __init__(
        self,
        width: int,
        lists: Sequence[tuple[int, ...]] = (),
        list_of: Mapping[int, int] = MappingProxyType({}),
        *,
        memory_bytes: int = 0,
    ) -> None:
        self.width = width
        self._list_of = list_of
        self._memory_bytes = memory_bytes
        self._bytes = 0
        self._leading: list[tuple[int, int]] = []  # lists that lead the order, and their widths
        self._others: list[tuple[int, tuple[int, ...], set[SortKey]]] = []
        for number, places in enumerate(lists):
            if set(places) == set(range(len(set(places)))):
                self._leading.append((number, len(set(places))))
            else:
                self._others.append((number, places, set()))
        self._news = [False] * (len(lists) + 1)  # the last one is that of NO_LIST

    def list_of(self, place: int) -> int:
        """Return the list of the output value at *place*, or NO_LIST."""
        return self._list_of.get(place, NO_LIST)

    def news(self, key: SortKey, before: SortKey | None) -> Sequence[bool]:
        """Say for each list whether its values are new in the group, and none of them is NULL.

        key: of a row. before: of the row before; None where that is of another group.

        Raises:
            DistinctTooLarge: too many would have to be remembered.
        """
        news = self._news
        arguments = key[self.width :]
        for number, count in self._leading:
            found = arguments[:count]
            is_same = before is not None and before[self.width :][:count] == found
            news[number] = not is_same and _NULL not in found
        if before is None:
            self._bytes = 0
        for number, places, seen in self._others:
            if before is None:
                seen.clear()
            found = tuple([arguments[place] for place in places])
            news[number] = found not in seen and _NULL not in found
            if news[number]:
                seen.add(found)
                self._bytes += _VALUE_BYTES + sum(map(_size, found))
        if self._bytes > self._memory_bytes:
            raise DistinctTooLarge(self._memory_bytes)
        return news


def _size(component: tuple[object, ...]) -> int:
    value = component[1]
    return len(value) if isinstance(value, bytes) else 0
