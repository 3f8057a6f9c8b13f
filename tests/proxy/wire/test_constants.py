from streamfrom.proxy.wire.constants import (
    BACKEND_NEEDS,
    BACKEND_WISHES,
    CHARSETS,
    UTF8MB4_CHARSET,
    Capability,
)


def test_a_backend_never_gets_several_statements_at_once():
    assert not BACKEND_WISHES & Capability.MULTI_STATEMENTS
    assert BACKEND_WISHES & BACKEND_NEEDS == BACKEND_NEEDS


def test_no_character_set_hides_ascii_inside_other_characters():
    assert not {charset for charset, _ in CHARSETS.values()} & {
        "gbk", "gb18030", "sjis", "cp932", "big5", "ucs2", "utf16", "utf16le", "utf32",
    }  # fmt: skip
    assert CHARSETS[UTF8MB4_CHARSET] == ("utf8mb4", "utf8mb4_general_ci")
    for charset, collation in CHARSETS.values():
        assert collation.startswith(charset)
