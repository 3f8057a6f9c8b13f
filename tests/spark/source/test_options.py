"""What users may say, and what each mistake is answered with."""

import ast

import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError
from streamfrom.spark.source.options import Options, parse_options
from tests.cases import cases


GIVEN = {"proxy": "mysql://me@db:1/ks", "table": "t"}


def test_defaults_and_names_in_any_case():
    assert parse_options(GIVEN) == Options(Endpoint("db", 1, "me", "ks"), "t")
    more = {
        "MAXROWSPERBATCH": "7", "leaseseconds": "1.5", "shards": " -80 ,80-", "FEED": "acked",
    }  # fmt: skip
    found = parse_options(GIVEN | more)
    assert (found.max_rows_per_batch, found.lease_s, found.feed) == (7, 1.5, "acked")
    assert found.shards == ("-80", "80-")
    assert parse_options(GIVEN | {"WHERE": " id > 5 "}).where == "id > 5"


def test_chosen_shards_come_in_the_keyspaces_order(monkeypatch):
    monkeypatch.setattr("streamfrom.spark.source.options.shards_of", lambda _: ["-80", "80-"])
    at = Endpoint("db", 3306, "app", "commerce")
    for wanted in ((), ("80-", "-80")):
        assert Options(at, "t", wanted).chosen_shards() == ("-80", "80-")
    with pytest.raises(RequestError, match="no shard '-40'; it has -80, 80-"):
        Options(at, "t", ("-40",)).chosen_shards()


def test_the_password_comes_from_the_environment_and_is_not_shown(monkeypatch):
    monkeypatch.setenv("MY_PASSWORD", "geheim")
    found = parse_options(GIVEN | {"password_env": "MY_PASSWORD"})
    assert found.endpoint.password == "geheim"
    assert "geheim" not in repr(found)


@cases(more=ast.literal_eval, what=str)
def test_a_mistake_is_named(more, what):
    with pytest.raises(RequestError) as caught:
        parse_options(GIVEN | more)
    assert what in str(caught.value)
