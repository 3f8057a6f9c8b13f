from hypothesis import given, strategies as st

from streamfrom.proxy.twophase.triage import Seen, Triage
from streamfrom.proxy.twophase.xid import GlobalId


A, B, C = "a" * 16, "b" * 16, "c" * 16
FIRST = GlobalId(A, "1" * 32)
STRANGE = GlobalId("d" * 16, "3" * 32)


def seen(*prepared, decided=()):
    return Seen(frozenset(prepared), {whole: frozenset(tables) for whole, tables in decided})


def look(triage, now_s, *, live=(), known=(A, B, C), **shards):
    return triage.look(
        now_s,
        {{"a": A, "b": B, "c": C}[name]: shard for name, shard in shards.items()},
        known=known,
        live=live,
    )


def made():
    return Triage(grace_s=5, quiet_s=60)


def test_a_branch_whose_decision_is_kept_elsewhere_is_told_once_and_left_alone():
    triage = made()
    branch = STRANGE.branch(B)
    assert look(triage, 0, b=seen(branch)).strangers == ()
    found = look(triage, 5, b=seen(branch))
    assert (found.resolve, found.strangers) == ((), (branch,))
    assert look(triage, 6, b=seen(branch)).strangers == ()


def test_a_decision_is_kept_while_it_lives_and_a_branch_seen_begins_the_quiet_anew():
    triage = made()
    row = (FIRST, (B,))
    look(triage, 0, a=seen(decided=[row]), b=seen())
    look(triage, 50, a=seen(decided=[row]), b=seen(FIRST.branch(B)))
    look(triage, 51, a=seen(decided=[row]), b=seen())
    assert look(triage, 100, a=seen(decided=[row]), b=seen()).forget == ()
    assert look(triage, 111, a=seen(decided=[row]), b=seen()).forget == (FIRST,)
    triage = made()
    row = (FIRST, (B,))
    for now_s in (0, 100):
        found = look(triage, now_s, live={FIRST}, a=seen(decided=[row]), b=seen())
        assert found.forget == ()


@given(
    st.lists(
        st.tuples(
            st.floats(0, 100),
            st.dictionaries(st.sampled_from("abc"), st.sets(st.sampled_from("bc"))),
        ),
        max_size=20,
    )
)
def test_nothing_is_forgotten_that_was_seen_within_the_quiet(looks):
    """And nothing while a shard that may have a branch did not answer."""
    triage = made()
    tables = {"b": B, "c": C}
    now_s = 0.0
    # When a look last saw a branch, or could not say.
    unsure_s = 0.0
    row = (FIRST, (B, C))
    for pause_s, answers in looks:
        now_s += pause_s
        shards = {
            name: seen(
                *(FIRST.branch(tables[of]) for of in branches),
                decided=[row] if name == "a" else (),
            )
            for name, branches in answers.items()
        }
        if not {"b", "c"} <= answers.keys() or any(answers.values()):
            unsure_s = now_s
        if look(triage, now_s, **shards).forget:
            assert now_s - unsure_s >= 60
