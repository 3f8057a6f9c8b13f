"""What is left out of a template, and where its places were before."""

from streamfrom.sqlparse_ext.text.lexer import Fold, fold_lists, fold_rows


def test_one_row_of_each_kind_stays_and_the_literals_of_all_fall_out():
    template = b"INSERT t VALUES (\0, f(\0)), (\1, g()), (\0, f(\0)) AS n(\0)"
    folded, folds, left_out = fold_rows(template, has_rows=False)
    assert folded == b"INSERT t VALUES (\6, f(\6)), (\6, g()) AS n(\0)"
    assert folds == [Fold(16, 46, 19)]
    assert left_out == [(0, 5)]


def test_a_list_becomes_one_mark_and_tells_where_its_literals_are():
    template = b"a = \0 AND b IN (\0, \1,\0) AND (c, d) in ((\0,\1)) AND e = \0"
    folded, folds, runs = fold_lists(template)
    assert folded == b"a = \0 AND b IN (\4) AND (c, d) in (\4) AND e = \0"
    assert [fold.size for fold in folds] == [1, 1]
    assert runs == ((1, 1, 3), (2, 4, 2))
