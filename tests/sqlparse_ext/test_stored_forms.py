import ast

from streamfrom.sqlparse_ext.literal_values import Bits
from streamfrom.sqlparse_ext.stored_forms import ColumnType, folds_case, stored_form
from tests.cases import cases
from tests.sqlparse_ext.facts import value


CI, BIN = "utf8mb4_general_ci", "utf8mb4_bin"


@cases(kind=str, written=value, stored=value)
def test_a_value_is_stored_in_one_form_or_in_one_that_is_not_known(kind, written, stored):
    form = stored_form(ColumnType(kind, BIN))
    assert form.stored(written) == stored
    assert stored is not None or form.hint


@cases(kind=str, collation=str, folds=ast.literal_eval, written=str.encode, stored=str.encode)
def test_a_text_is_stored_as_its_type_and_its_collation_have_it(
    kind, collation, folds, written, stored
):
    assert stored_form(ColumnType(kind, collation), folds=folds).stored(written) == stored


@cases(kind=str, wanted=value, equal=value)
def test_a_lookup_finds_the_form_of_what_is_equal_or_none(kind, wanted, equal):
    assert stored_form(ColumnType(kind, BIN)).equal(wanted) == equal


def test_values_of_a_column_that_is_not_known_yet_are_as_they_are_written():
    of_strings, of_numbers = stored_form(None, holds_strings=True), stored_form(None)
    assert of_strings.stored(Bits(b"9")) == b"9"
    assert of_numbers.stored(Bits(b"9")) == 57
    assert (of_strings.equal(5), of_numbers.equal(5)) == (None, 5)


def test_case_counts_by_binary_collations_alone():
    assert folds_case(ColumnType("varchar(9)", CI))
    assert not folds_case(ColumnType("varchar(9)", BIN))
    assert not folds_case(ColumnType("bigint(20)"))
