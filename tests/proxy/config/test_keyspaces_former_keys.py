from pathlib import Path

import pytest

from streamfrom.proxy.config.keyspaces import refuse_walls
from streamfrom.proxy.config.toml_values import ConfigError, Surroundings, TomlTable
from tests.cases import cases


WHY = "the server's grants decide what the user's own account may do"


def table(**values):
    return TomlTable(values, "users[0]", Surroundings(Path("/"), {}))


@cases(role=str, grant=str)
def test_a_former_role_names_the_grant(role, grant):
    with pytest.raises(ConfigError) as caught:
        refuse_walls(table(role=role), "o`neil")
    assert str(caught.value) == (
        f'users[0].role: expected "user" or "admin": "{role}" is gone, {WHY}; leave role out, and run'
        f" at each shard: GRANT {grant}"
    )


@pytest.mark.parametrize(
    ("key", "place"), [("keyspaces", "`database`.*"), ("tables", "`database`.`table`")]
)
@pytest.mark.parametrize("value", [["commerce"], [], 5])
def test_a_former_list_names_the_grant(key, place, value):
    with pytest.raises(ConfigError) as caught:
        refuse_walls(table(**{key: value}), "app")
    assert str(caught.value) == (
        f"users[0].{key}: no key any more: {WHY}; leave it out, and run for each: GRANT SELECT ON"
        f" {place} TO `app`"
    )


def test_the_roles_of_today_and_other_values_are_for_others_to_judge():
    for values in ({}, {"role": "admin"}, {"role": "owner"}, {"role": 5}):
        refuse_walls(table(**values), "app")
