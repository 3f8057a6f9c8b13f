"""What the desk asks a server, and what follows from its answers."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.backends.account import SHARDS_ACCOUNT, Account
from streamfrom.proxy.config.toml_values import Secret
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.rights import desk as answers
from streamfrom.proxy.rights.desk import KEPT_S, Answer, Answers, Question, RightsDesk
from streamfrom.proxy.rights.questions import Act, Right
from streamfrom.proxy.status.status_source import Sight
from tests.proxy.fake_answers import Error, Rows, until
from tests.proxy.fake_server import PASSWORD


TAKE = Right(Act.TAKE, "msg", ("id", "message"))
SELECT = "SELECT `id`, `message` FROM `msg` LIMIT 0"
UPDATE = "UPDATE `msg` SET `time_next` = NULL, `time_acked` = NULL WHERE FALSE"
DENIED = Error(1142, "UPDATE command denied to user 'app'@'%' for table 'msg'", "42000")
READ_ONLY = Error(1290, "The server is running with the --read-only option")
TABLES = "information_schema.tables"


@pytest.fixture
def app(server) -> Account:
    server.on("SELECT `id`", Rows(("id", "message")))
    return Account("app", Secret(PASSWORD))


@pytest.fixture
async def desk():
    made = RightsDesk(lambda: 30.0, asyncio.create_task)
    yield made
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        if "_keep_watch" in repr(task):
            task.cancel()


def questions(server):
    return [sql for sql in server.heard if "msg" in sql]


async def test_a_refusal_names_the_shard_and_what_to_grant(server, shard, app, desk):
    server.on("UPDATE `msg`", DENIED)
    for _ in range(2):
        with pytest.raises(BackendError) as caught:
            await desk.check(Question(app, None, shard, TAKE))
        assert caught.value.wire_code() == (1142, "42000")
        assert str(caught.value) == (
            f"{DENIED.message} (shard {shard}; STREAM needs GRANT SELECT (`id`, `message`),"
            f" UPDATE (`time_next`, `time_acked`) ON `{shard.database}`.`msg`)"
        )
    assert questions(server) == [SELECT, UPDATE], "it was remembered"


async def test_the_account_of_the_shards_is_never_asked_about(server, shard, desk):
    await desk.check(Question(SHARDS_ACCOUNT, None, shard, TAKE))
    assert desk.allows(SHARDS_ACCOUNT, shard, TAKE)
    assert (await desk.sight([Question(SHARDS_ACCOUNT, None, shard, None)])).sees(
        "any", "thing"
    )
    assert questions(server) == []


@pytest.mark.parametrize("failure", [READ_ONLY, Error(1205, "Lock wait timeout exceeded")])
async def test_a_failure_that_is_no_refusal_takes_no_right_away_and_gives_none(
    server, shard, app, desk, failure
):
    key = Question(app, None, shard, TAKE)
    server.once("UPDATE `msg`", failure)
    with pytest.raises((BackendUnavailable, BackendError)) as caught:
        await desk.check(key)
    assert failure.message in str(caught.value)
    await desk.check(key)
    desk.changed()
    server.once("UPDATE `msg`", failure, failure)
    await desk.check(key)
    assert not desk.allows(app, shard, TAKE), "it is not known"
    await until(lambda: len(questions(server)) == 8)
    server.on("UPDATE `msg`", DENIED)
    desk.changed()
    with pytest.raises(BackendError):
        await desk.check(key)
    server.once("UPDATE `msg`", failure)
    desk.changed()
    with pytest.raises((BackendUnavailable, BackendError)) as caught:
        await desk.check(key)
    assert failure.message in str(caught.value), "a refusal does not stand in"


async def test_a_server_in_trouble_is_not_waited_for_where_the_last_answer_stands(
    server, shard, app, desk, monkeypatch
):
    key = Question(app, None, shard, TAKE)
    await desk.check(key)
    monkeypatch.setattr(answers, "KEPT_S", 0.0)
    for trouble, asked in (("no answer within 10 s", 2), (None, 4)):
        shard.trouble = trouble
        await desk.check(key)
        assert len(questions(server)) == asked
    shard.trouble = "read_only"
    desk.changed()
    await desk.check(key)
    assert len(questions(server)) == 6, "a change is asked for"


async def test_an_act_that_cannot_wait_is_allowed_once_the_answer_is_known(
    server, shard, app, desk
):
    assert not desk.allows(app, shard, TAKE)
    await until(lambda: desk.allows(app, shard, TAKE))
    assert questions(server) == [SELECT, UPDATE]
    server.on("UPDATE `msg`", DENIED)
    desk.changed()
    assert not desk.allows(app, shard, TAKE)
    await until(lambda: len(questions(server)) == 4)
    assert not desk.allows(app, shard, TAKE)


async def test_a_stream_ends_when_its_right_could_not_be_asked_for_any_more(server, shard, app):
    desk = RightsDesk(lambda: -30.0, asyncio.create_task)
    key = Question(app, None, shard, TAKE)
    await desk.check(key)
    told: list[Any] = []
    unwatch = desk.watch([key], told.append)
    server.on("UPDATE `msg`", READ_ONLY)
    desk.changed()
    await until(lambda: told)
    assert isinstance(told[0], BackendUnavailable)
    unwatch()
    desk.changed()
    await until(lambda: not any("_keep_watch" in repr(task) for task in asyncio.all_tasks()))


async def test_of_several_shards_the_account_sees_what_all_show(
    server, other_server, low, high, app, desk
):
    keys = [Question(app, None, each, None) for each in (low, high)]
    for each, tables in ((server, (b"a", b"b")), (other_server, (b"b", b"c"))):
        each.on("information_schema.schemata", Rows(("n",), ((b"ks",),)))
        each.on(TABLES, Rows(("n",), tuple((name,) for name in tables)))
    assert (await desk.sight(keys)).tables == {"ks": frozenset("b")}
    other_server.on("information_schema.schemata", Error(1044, "Access denied", "42000"))
    desk.changed()
    assert (await desk.sight(keys)).tables == {}
    other_server.on("information_schema.schemata", READ_ONLY)
    fresh = RightsDesk(lambda: 30.0, asyncio.create_task)
    assert (await fresh.sight(keys)).tables == {"ks": frozenset("ab")}, "one cannot be asked"
    high.trouble = "silent"
    other_server.heard.clear()
    fresh = RightsDesk(lambda: 30.0, asyncio.create_task)
    assert (await fresh.sight(keys)).tables == {"ks": frozenset("ab")}
    assert other_server.heard == [], "it would be waited for"
    low.trouble = "away"
    with pytest.raises(BackendUnavailable, match="away"):
        await RightsDesk(lambda: 30.0, asyncio.create_task).sight(keys)


async def test_tables_that_have_come_are_seen_at_once(server, shard, app, desk):
    keys = [Question(app, None, shard, None)]
    server.on("information_schema.schemata", Rows(("n",), ((b"ks",),)))
    for tables in ("a", "ab", "abc"):
        server.on(TABLES, Rows(("n",), tuple((name.encode(),) for name in tables)))
        begun = asyncio.create_task(
            desk.sight(keys)
        )  # its question may be older than the change
        await asyncio.sleep(0)
        desk.tables_changed(shard.keyspace)
        seen = [await desk.sight(keys), await desk.sight(keys)]
        assert seen == [Sight({shard.keyspace: frozenset(tables)})] * 2
        await begun
    shard.trouble = "silent"
    desk.tables_changed(shard.keyspace)
    seen_last = Sight({shard.keyspace: frozenset("abc")})
    assert await desk.sight(keys) == seen_last, "it stands in for what cannot be asked"


# How long answers hold: a model with every history that the strategy finds.
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
        assert sum(map(kept.has, range(25))) <= 10
    assert [kept.has(number) for number in (14, 15, 24)] == [False, True, True]
