import pytest

from streamfrom.proxy.config.fleet_members import AUTO, FleetConfig, read_address, worker_count
from streamfrom.proxy.config.toml_values import ConfigError
from tests.cases import cases
from tests.proxy.config.files import UNSHARDED


@pytest.fixture
def fleet(read):
    return lambda text: read(f"{UNSHARDED}\n{text}").fleet


def test_a_fleet_needs_nothing_from_the_configuration(fleet):
    assert fleet("") == fleet("[fleet]") == FleetConfig("", None, None)
    text = "[fleet]\nname = 'shop'\nlisten = '[::]:0'\nadvertise = 'nat.example:7'"
    assert fleet(text) == FleetConfig("shop", "[::]:0", "nat.example:7")
    assert fleet("[fleet]\nlisten = ''") == FleetConfig("", "", None)


@cases(text=str, error=str)
def test_what_cannot_be_is_refused(refused, text, error):
    assert error in refused(f"{UNSHARDED}\n[fleet]\n{text}")[0]


def test_an_address_is_a_host_and_a_port():
    assert read_address("[::1]:15306") == ("::1", 15306)
    assert read_address("db:0") == ("db", 0)
    for text in ("::1:15306", "db", ":1", "db:x", "db:65536", ""):
        assert read_address(text) is None


def test_workers_are_one_unless_told_otherwise(fleet):
    assert worker_count(fleet("[fleet]"), 3, 8) == 3
    assert worker_count(fleet("[fleet]"), None, 8) == 1
    assert worker_count(fleet("[fleet]\nworkers = 4"), None, 8) == 4
    assert worker_count(fleet("[fleet]\nworkers = 4"), 2, 8) == 2
    assert worker_count(fleet("[fleet]\nworkers = 'auto'"), None, 8) == 8
    assert worker_count(fleet("[fleet]\nworkers = 4"), AUTO, 8) == 8
    assert worker_count(fleet("[fleet]\nworkers = 'auto'"), None, 96) == 64
    assert worker_count(FleetConfig(listen="10.0.0.5:0"), 4, 8) == 4


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (FleetConfig(listen="10.0.0.5:7000"), "fleet.listen"),
        (FleetConfig(listen=""), "fleet.listen"),
        (FleetConfig(advertise="nat.example:7"), "fleet.advertise"),
    ],
)
def test_workers_that_could_not_reach_each_other_are_refused(settings, key):
    assert worker_count(settings, 1, 8) == 1
    with pytest.raises(ConfigError) as caught:
        worker_count(settings, 2, 8)
    assert caught.value.key == key
