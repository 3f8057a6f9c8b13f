"""How many rows of message tables are unacked, as the server's optimizer estimates it by one dive into the index.

A COUNT(*) walks all rows that it counts, a second for ten million. EXPLAIN of a read of an
index looks at both ends of the range and at some pages between, in some microseconds, however many rows there are:
https://dev.mysql.com/doc/refman/8.4/en/range-optimization.html#equality-range-optimization
It never says 0, and counts rows that a transaction has not yet taken out of the index: what looks like few rows is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamfrom.engine.messaging.conversation import StoreQuery
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamfrom.engine.messaging.conversation import Conversation
    from streamfrom.engine.messaging.message_table import MessageTable


# One EXPLAIN is for so many tables; servers take a few thousand SELECTs in a UNION.
TABLES_MAX: Final = 200
# So many rows are counted; more are estimated.
COUNTED_MAX: Final = 100
# Of an answer's columns the third is the table; `rows` stands last but one, before MySQL's `filtered` last but two.
_TABLE: Final = 2
_COLUMNS_OF_MYSQL: Final = 12


def depths(tables: Sequence[MessageTable]) -> Conversation[dict[str, int]]:
    """Ask for the unacked rows of each table; return them by the tables' names."""
    found: dict[str, int] = {}
    for start in range(0, len(tables), TABLES_MAX):
        some = tables[start : start + TABLES_MAX]
        names = [quote_identifier(table.name).encode() for table in some]
        selects = b" UNION ALL ".join(
            b"(SELECT 1 FROM %b AS q%d WHERE time_acked IS NULL)" % (name, index)
            for index, name in enumerate(names)
        )
        answer = yield StoreQuery(b"EXPLAIN FORMAT=TRADITIONAL " + selects, _COLUMNS_OF_MYSQL)
        for row, _ in answer.rows:
            alias = row[_TABLE] or b""
            if alias[:1] == b"q" and alias[1:].isdigit():
                found[some[int(alias[1:])].name] = estimated_rows(row)
        # Of an empty table a server may say that no row can match, and not of which table.
        few = [
            index for index, table in enumerate(some) if found.get(table.name, 0) < COUNTED_MAX
        ]
        if few:
            counts = b" UNION ALL ".join(
                b"(SELECT %d, COUNT(*) FROM (SELECT 1 FROM %b WHERE time_acked IS NULL LIMIT %d) AS n)"
                % (index, names[index], COUNTED_MAX)
                for index in few
            )
            answer = yield StoreQuery(counts, 2)
            for (which, count), _ in answer.rows:
                found[some[int(which or 0)].name] = int(count or 0)
    return found


def estimated_rows(row: Sequence[bytes | None]) -> int:
    """Return how many rows a row of EXPLAIN's answer expects."""
    return int((row[-3] if len(row) == _COLUMNS_OF_MYSQL else row[-2]) or 0)
