"""A builder becomes a shape that nobody can change."""

from dataclasses import fields

import pytest

from streamfrom.sqlparse_ext.reading.shape_builder import ShapeBuilder
from streamfrom.sqlparse_ext.statements import Kind, Shape, Slot, Uses


def test_a_draft_has_the_fields_of_a_shape():
    assert {each.name for each in fields(ShapeBuilder)} == {each.name for each in fields(Shape)}


def test_a_shape_keeps_what_the_draft_had_and_freezes_it():
    builder = ShapeBuilder(b"x", Uses.LIMIT, kind=Kind.SELECT, conditions={"id": (Slot(0),)})
    shape = builder.shape()
    assert (shape.template, shape.uses, shape.kind) == (b"x", Uses.LIMIT, Kind.SELECT)
    assert shape.conditions == {"id": (0,)}
    with pytest.raises(TypeError):
        shape.conditions["a"] = ()  # type: ignore[index]
