import ast
import json

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.errors import SequenceError, VschemaError
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.engine.sharding.sequence_tables import (
    SequenceBlock,
    check_increment,
    extend,
    resolve,
)
from streamfrom.engine.sharding.vschema import parse_vschema
from tests.cases import cases


def keyspace(name, tables, sharded=False):
    text = json.dumps({"sharded": sharded, "tables": tables})
    names = ("-80", "80-") if sharded else ("-",)
    return Keyspace(name, tuple(map(Shard.named, names)), parse_vschema(text, name))


SEQ = {"type": "sequence"}
HOME = keyspace("home", {"t": {"type": "reference"}, "pinned": {**SEQ, "pinned": "80"}}, True)
LOOKUP = keyspace("lookup", {"seq": SEQ, "twice": SEQ})
OTHER = keyspace("other", {"twice": SEQ})
BARE = Keyspace("bare", (Shard.named("0"),))
ALL = {each.name: each for each in (HOME, LOOKUP, OTHER, BARE)}


# --- where -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "home", "place", "shard"),
    [
        ("seq", HOME, "lookup.seq", "-"),
        ("lookup.seq", HOME, "lookup.seq", "-"),
        ("pinned", HOME, "home.pinned", "80-"),
        ("home.pinned", LOOKUP, "home.pinned", "80-"),
        ("twice", OTHER, "other.twice", "-"),
        ("bare.any", HOME, "bare.any", "0"),
        ("own", BARE, "bare.own", "0"),
    ],
)
def test_a_name_means_the_sequence_of_one_keyspace(name, home, place, shard):
    found = resolve(name, home, ALL)
    assert (str(found), found.shard.name) == (place, shard)


@cases(name=str, reason=str)
def test_a_name_that_means_none_is_an_error_of_the_vschema(name, reason):
    with pytest.raises(VschemaError, match=f"^cannot resolve sequence {name}: {reason}$"):
        resolve(name, HOME, ALL)


# --- values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "row", "count", "result"),
    [
        (SequenceBlock(), (1, 1000), 1, SequenceBlock(1, 1001)),
        (SequenceBlock(), (1, 3), 7, SequenceBlock(1, 10)),
        (SequenceBlock(1000, 1001), (1001, 1000), 2, SequenceBlock(1000, 2001)),
        (SequenceBlock(1000, 1001), (5001, 1000), 2, SequenceBlock(5001, 6001)),
        (SequenceBlock(1000, 2001), (1, 1000), 1500, SequenceBlock(2001, 4001)),
    ],
)
def test_a_block_goes_on_where_the_table_says(block, row, count, result):
    extended = extend("seq", block, [row], count)
    assert extended == result
    assert extended.has(count)


@cases(rows=ast.literal_eval, sentence=str)
def test_a_row_that_cannot_be_used_is_told_in_vitess_words(rows, sentence):
    with pytest.raises(SequenceError) as caught:
        extend("seq", SequenceBlock(), rows, 1)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("count", [0, -1])
def test_at_least_one_value_must_be_asked_for(count):
    with pytest.raises(SequenceError, match=f"^invalid increment for sequence seq: {count}$"):
        check_increment("seq", count)


@given(
    st.integers(1, 50), st.lists(st.tuples(st.integers(0, 2), st.integers(1, 120)), max_size=60)
)
def test_several_proxies_never_give_a_value_twice(cache, requests):
    next_id = 1
    blocks = [SequenceBlock(), SequenceBlock(), SequenceBlock()]
    given_out: list[int] = []
    for proxy, count in requests:
        if not blocks[proxy].has(count):
            blocks[proxy] = extend("seq", blocks[proxy], [(next_id, cache)], count)
            assert blocks[proxy].end > next_id
            next_id = blocks[proxy].end
        given_out += range(blocks[proxy].next_value, blocks[proxy].next_value + count)
        blocks[proxy] = blocks[proxy].without(count)
    assert len(set(given_out)) == len(given_out)
    assert not given_out or max(given_out) < next_id
