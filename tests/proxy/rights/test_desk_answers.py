"""How long answers hold: a model with every history that the strategy finds."""

from hypothesis import given, strategies as st

from streamfrom.proxy.rights import desk as answers
from streamfrom.proxy.rights.desk import KEPT_S, Answer, Answers


GRACE_S = 45.0
KEYS = st.sampled_from("ab")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.floats(0, 40)),
        st.tuples(st.just("ask"), KEYS, st.booleans(), st.floats(0, 40)),
        st.tuples(st.just("forget")),
    ),
    max_size=30,
)


@given(STEPS)
def test_an_answer_is_used_for_30_s_or_until_grants_change_and_stands_in_for_the_grace(steps):
    """An answer comes some seconds after its question, perhaps behind that of a later one, or behind a change of grants."""
    kept: Answers[str, bool] = Answers()
    now_s, changed_s = 100.0, -1.0
    waiting: list[tuple[float, str, Answer[bool]]] = []
    latest: dict[str, Answer[bool]] = {}
    for step in steps:
        now_s += 0.001  # no two things happen at one moment
        match step:
            case ("pass", seconds):
                now_s += seconds
            case ("ask", key, value, seconds):
                answer = Answer(value, now_s, kept.generation)
                waiting.append((now_s + seconds, key, answer))
            case _:
                kept.forget()
                changed_s = now_s
        for each in sorted(each for each in waiting if each[0] <= now_s):
            waiting.remove(each)
            _, key, answer = each
            kept.keep(key, answer)
            if key not in latest or latest[key].asked_s <= answer.asked_s:
                latest[key] = answer
        for key in "ab":
            known = latest.get(key)
            age_s = float("inf") if known is None else now_s - known.asked_s
            is_fresh = age_s < KEPT_S and known is not None and known.asked_s > changed_s
            assert kept.fresh(key, now_s) == (known if is_fresh else None)
            assert kept.last(key, now_s, GRACE_S) == (
                known if age_s < KEPT_S + GRACE_S else None
            )


def test_the_answers_of_many_accounts_take_bounded_memory(monkeypatch):
    monkeypatch.setattr(answers, "ANSWERS_MAX", 10)
    kept: Answers[int, bool] = Answers()
    for number in range(25):
        kept.keep(number, Answer(value=True, asked_s=float(number), generation=0))
        assert len(kept) <= 10
    assert [kept.has(number) for number in (14, 15, 24)] == [False, True, True]
