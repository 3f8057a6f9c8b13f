"""The parts of a page: what goes in comes out as text."""

from streamfrom.spark.jobs.analytics import html_parts


HOSTILE = "<script>alert(1)</script>"


def test_names_are_escaped_and_long_ones_cut():
    assert html_parts.name(HOSTILE) == "&lt;script&gt;alert(1)&lt;/script&gt;"
    assert "—" in html_parts.name(None)
    long = html_parts.name(HOSTILE * 9)
    assert "<script" not in long
    assert "…</span>" in long


def test_a_meter_is_filled_by_a_share():
    assert "width:25.0%" in html_parts.meter(1, 4)
    assert "width:0.0%" in html_parts.meter(1, 0)


def test_heads_stand_over_text_or_numbers():
    table = html_parts.table(("id", "|shard", "!sends"), [("7", "-80", "9")])
    assert '<td class="name">7</td><td class="text">-80</td><td class="hot">9</td>' in table
    assert '<th>id</th><th class="text">shard</th><th>sends</th>' in table


def test_legends_are_escaped():
    assert "<script" not in html_parts.legend([(HOSTILE, "s0", "fill")])


def test_a_name_may_be_broken_where_a_reader_would():
    assert html_parts.breakable("ks.my_<t>") == "ks.<wbr>my_<wbr>&lt;t&gt;"
