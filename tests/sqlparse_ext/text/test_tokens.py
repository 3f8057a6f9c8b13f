"""Tokens of a template, and the cursor over them."""

from streamfrom.sqlparse_ext.statements import ListSlot, Slot, TableRef
from streamfrom.sqlparse_ext.text.tokens import (
    END,
    Cursor,
    outside_parens,
    split_commas,
    tokenise,
    unquote,
)


def cursor(template: bytes) -> Cursor:
    return Cursor(tokenise(template).tokens, template)


def keys(template: bytes) -> list[str]:
    return [token.key for token in tokenise(template).tokens]


def test_words_are_upper_case_and_quoted_names_are_never_keywords():
    assert keys(b"select `select` from t.from") == [
        "SELECT",
        "`select`",
        "FROM",
        "T",
        ".",
        "`FROM",
    ]


def test_only_ascii_letters_change_case():
    assert keys("\u017felect ß".encode()) == ["\u017fELECT", "ß"]


def test_operators_are_whole():
    assert keys(b"a<=>b:=c->>d||e!=f") == [
        *["A", "<=>", "B", ":=", "C", "->>", "D", "||", "E", "!=", "F"]
    ]


def test_what_is_outside_of_parentheses_is_none_of_them_either():
    tokens = tokenise(b"a (b (c)) d, e)").tokens
    assert [tokens[place].key for place in outside_parens(tokens, 0, len(tokens))] == [
        *["A", "D", ",", "E"]
    ]
    assert list(outside_parens(tokens, 2, 4)) == [2]


def test_slots_count_markers():
    slots = [
        token.slot for token in tokenise(b"\0 \1 (\4) \6 \0").tokens if token.slot is not None
    ]
    assert slots == [0, 1, 2, 3]
    assert [type(slot) for slot in slots] == [Slot, Slot, ListSlot, Slot]


def test_an_end_without_a_comment_is_two_operators():
    assert keys(b"a */ b") == ["A", "*", "/", "B"]


def test_hints_are_set_aside():
    lexed = tokenise(b"select /*+ x */ /*vt+ Y=1 */ a")
    assert lexed.hints == [b"/*+ x */", b"/*vt+ Y=1 */"]
    assert [token.key for token in lexed.tokens] == ["SELECT", "A"]


def test_unquoting():
    template = b"a `b``c` @d @`e f` @'g'"
    names = [unquote(token, template) for token in tokenise(template).tokens]
    assert names == ["a", "b`c", "d", "e f", "g"]


def test_a_cursor_never_falls_off_the_end():
    at = cursor(b"a")
    assert at.take().key == "A"
    assert at.take() is END
    assert at.key == ""
    assert not at.accept("A")
    assert at.table() is None
    assert not at.skip_parens()


def test_accepting_several_keys_is_all_or_nothing():
    at = cursor(b"on duplicate key")
    assert not at.accept("ON", "DELETE")
    assert at.accept("ON", "DUPLICATE")
    assert at.key == "KEY"


def test_tables():
    assert cursor(b"`a b`.c").table() == TableRef("a b", "c")
    assert cursor(b"a").table() == TableRef(None, "a")
    assert cursor(b"a.").table() is None


def test_finding_stays_outside_of_parentheses():
    at = cursor(b"a (b) b c")
    assert at.find({"B"}) == 4
    assert at.find({"X"}) == 6
    at.at = 2
    assert at.find({"C"}) == 3  # the parenthesis it is in ends there


def test_commas_inside_parentheses_do_not_split():
    tokens = tokenise(b"a, f(b, c), d").tokens
    assert split_commas(tokens, 0, len(tokens)) == [(0, 1), (2, 8), (9, 10)]


def test_a_native_function_is_a_word_however_its_name_is_quoted():
    assert keys(b"`get_lock`(`sleep`, `Uuid` (1))")[:5] == [
        "GET_LOCK",
        "(",
        "`sleep`",
        ",",
        "UUID",
    ]
    # Words of the grammar are a stored function once they are quoted, and so is what a schema is before.
    assert keys(b"`user`() + a.`uuid`() + a.uuid()") == [
        *[
            "`user`",
            "(",
            ")",
            "+",
            "A",
            ".",
            "`uuid`",
            "(",
            ")",
            "+",
            "A",
            ".",
            "`UUID",
            "(",
            ")",
        ]
    ]


def test_a_system_variable_is_one_token_however_it_is_written():
    assert keys(b"@@`socket`, @@session . `sql_mode`=@@global.x.y, @@") == [
        *["@@socket", ",", "@@session.sql_mode", "=", "@@global.x.y", ",", "@@"]
    ]
