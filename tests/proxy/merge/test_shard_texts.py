import pytest

from streamfrom.proxy.merge.shard_texts import UnionTexts
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.inner_selects import read_union
from tests.proxy.merge.answers import number, texts
from tests.sqlparse_ext.facts import statement


def test_a_union_is_asked_for_as_a_derived_table_and_described_as_it_is():
    found = statement("SELECT a FROM t UNION ALL SELECT 7 FROM u ORDER BY a LIMIT 5")
    union = read_union(found.shape.template, is_distinct=False)
    assert union is not None
    parts = UnionTexts(found, union)
    assert parts.described().startswith(
        b"SELECT a FROM t UNION ALL SELECT 7 FROM u ORDER BY a LIMIT 0"
    )
    assert parts.ask_columns().startswith(
        b"SELECT * FROM (SELECT a FROM t UNION ALL SELECT 7 FROM u)"
    )
    parts.check_described([number("a"), number("b")])
    for names in (["a", "A"], ["a", ""], ["a "]):
        with pytest.raises(Unsupported, match="in a UNION over several shards"):
            parts.check_described([*map(number, names)])


def test_a_limit_must_be_a_number():
    with pytest.raises(Unsupported, match="this form of LIMIT"):
        texts("SELECT a FROM t LIMIT 1.5")
