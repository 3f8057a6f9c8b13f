"""Query one shard before a merged SELECT goes to all: for its columns, and for the types that its order compares.

`proxy.merge` writes the queries and reads the answers; this module sends them, in two round trips.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from streamfrom.proxy.merge.comparison import ColumnKey, Comparison, comparison_of, padding
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported


if TYPE_CHECKING:
    from streamfrom.proxy.backends.answer_readers import BufferedAnswer
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.merge.group_query import GroupsQuery
    from streamfrom.proxy.merge.row_merge import RowsQuery
    from streamfrom.proxy.merge.shard_texts import Texts
    from streamfrom.proxy.wire.resultset import ColumnDefinition


MergeQuery: TypeAlias = "RowsQuery | GroupsQuery"


async def ask_first(
    backend: Backend, texts: Texts, plan: MergeQuery
) -> tuple[bytes, list[bytes]]:
    """Return the text for every shard, and the column definitions of the answer so far.

    Raises Unsupported if the rows cannot be merged exactly, BackendError if the server refuses the SELECT, BackendLost.
    """
    described = await _ask_columns(backend, texts, plan)
    await _ask_comparisons(backend, texts, plan)
    return plan.sql(), described


async def _ask_columns(backend: Backend, texts: Texts, plan: MergeQuery) -> list[bytes]:
    questions = [texts.described()]
    if plan.asks_columns:
        questions.append(texts.ask_columns())
    answers = await _ask(backend, questions)
    for answer in answers:
        if answer.error is not None:
            raise answer.error.exception()
    names: frozenset[str] = frozenset()
    if plan.asks_columns:
        names = frozenset(
            parse_column_definition(each).name.lower() for each in answers[-1].columns
        )
    definitions = [parse_column_definition(each) for each in answers[0].columns]
    plan.describe(definitions, names)
    return answers[0].columns


async def _ask_comparisons(backend: Backend, texts: Texts, plan: MergeQuery) -> None:
    questions = []
    for text, aggregate in plan.expressions:
        questions.append(texts.ask_type(text))
        questions.append(texts.ask_collation(text, aggregate=aggregate))
    computation = plan.computation
    if computation is not None:
        questions += [computation.trial(), computation.ask_collations()]
    answers = await _ask(backend, questions) if questions else []
    if computation is not None:
        *answers, tried, collations = answers
        if tried.error is not None or collations.error is not None:
            raise computation.refused()
        computation.tried(
            [parse_column_definition(each) for each in tried.columns],
            parse_text_row(collations.rows[0]),
        )
    keys = []
    types = []
    for (text, _), typed, collated in zip(
        plan.expressions, answers[::2], answers[1::2], strict=True
    ):
        if typed.error is not None:
            raise Unsupported.computing(text, "a shard cannot sort or group by it alone")
        column = parse_column_definition(typed.columns[0])
        types.append(column)
        keys.append(_key(text, column, collated))
    plan.resolve(keys, types)


async def _ask(backend: Backend, questions: Sequence[bytes]) -> list[BufferedAnswer]:
    return await backend.answers([query(question) for question in questions])


def _key(text: bytes, column: ColumnDefinition, collated: BufferedAnswer) -> ColumnKey:
    comparison = comparison_of(column)
    if comparison is not Comparison.STRING:
        return ColumnKey(comparison)
    if collated.error is not None or not collated.rows:
        raise Unsupported.computing(text, "its strings have no collation to compare by")
    name, space = parse_text_row(collated.rows[0])
    is_char = column.type == FieldType.STRING
    return ColumnKey(comparison, padding((name or b"").decode(), space or b"", is_char=is_char))
