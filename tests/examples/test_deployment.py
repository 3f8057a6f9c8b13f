"""`examples/systemd`, `kubernetes`, `haproxy` and `compose-metrics.yaml`: each tool accepts its file, and names, ports and times fit together."""

import ipaddress
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamfrom.proxy.config.file import Config, load


ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
METRICS = yaml.safe_load((EXAMPLES / "compose-metrics.yaml").read_text())
# The longest that a stop takes beside shutdown_grace and failover_buffer.
STOP_SPARE_S = 3


def run(*words: str | Path) -> str:
    """Run a program that must accept what it is given; return what it says."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def needs(program: str) -> pytest.MarkDecorator:
    missing = shutil.which(program) is None
    return pytest.mark.skipif(missing, reason=f"{program} is not installed")


def stop_s(config: Config) -> float:
    """Return what a stop may take before it may be killed."""
    return config.server.shutdown_grace_s + config.server.failover_buffer_s + STOP_SPARE_S


def test_yaml_and_toml_are_well_formed() -> None:
    for path in EXAMPLES.rglob("*.y*ml"):
        for each in yaml.safe_load_all(path.read_text()):
            assert isinstance(each, dict), path
    assert all(tomllib.loads(path.read_text()) for path in EXAMPLES.rglob("*.toml"))


# --- systemd ---------------------------------------------------------------------------

UNIT = (EXAMPLES / "systemd" / "streamfrom.service").read_text()


def of_unit(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT, re.MULTILINE)


def test_the_unit_waits_for_a_stop_and_gives_up_on_a_wrong_configuration(
    manifests_config: Config,
) -> None:
    (seconds,) = of_unit("TimeoutStopSec")
    assert float(seconds) >= stop_s(manifests_config)
    assert of_unit("RestartPreventExitStatus") == ["2"]
    assert of_unit("Type") == ["notify"]
    assert of_unit("ExecReload") == ["/bin/kill -HUP $MAINPID"]


@needs("systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """The program and the user that it names are not on this machine."""
    unit = tmp_path / "streamfrom.service"
    text = UNIT.replace("/opt/streamfrom/bin/streamfrom", shutil.which("true") or "/bin/true")
    unit.write_text(re.sub("^(User|Group)=.*$", r"\1=root", text, flags=re.MULTILINE))
    # What it does not know is only told, with success.
    assert "streamfrom.service" not in run("systemd-analyze", "verify", unit)


# --- Kubernetes ------------------------------------------------------------------------


def manifests() -> Iterator[dict[str, Any]]:
    for path in sorted((EXAMPLES / "kubernetes").glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text())


def the(kind: str, name: str = "streamfrom") -> dict[str, Any]:
    (found,) = [
        each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found


@pytest.fixture
def manifests_config(tmp_path: Path) -> Config:
    """The configuration of the ConfigMap, with the Secret's names as the environment."""
    for name, text in the("ConfigMap")["data"].items():
        (tmp_path / name).write_text(text)
    secrets = the("Secret")["stringData"]
    return load(tmp_path / "streamfrom.toml", {**secrets, "POD_IP": "10.1.2.3"})


def pod() -> dict[str, Any]:
    template: dict[str, Any] = the("Deployment")["spec"]["template"]
    return template


def test_the_configuration_of_the_manifests_is_good(manifests_config: Config) -> None:
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert manifests_config.server.port == ports["mysql"]
    assert manifests_config.admin == ("0.0.0.0", ports["admin"])
    assert manifests_config.fleet is not None
    assert manifests_config.fleet.listen == f"10.1.2.3:{ports['fleet']}"
    assert ipaddress.ip_address(manifests_config.server.host).is_unspecified


def container() -> dict[str, Any]:
    (only,) = pod()["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def test_probes_ask_what_they_are_for_and_a_stop_has_its_time(manifests_config: Config) -> None:
    probes = {
        name: container()[f"{name}Probe"]["httpGet"] for name in ("liveness", "readiness")
    }
    assert probes["liveness"] == {"path": "/healthz", "port": "admin"}
    assert probes["readiness"] == {"path": "/readyz", "port": "admin"}
    assert pod()["spec"]["terminationGracePeriodSeconds"] >= stop_s(manifests_config)


def test_what_the_manifests_name_is_there() -> None:
    labels = pod()["metadata"]["labels"]
    names = {port["name"] for port in container()["ports"]}
    assert the("Deployment")["spec"]["selector"]["matchLabels"] == labels
    assert the("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    for name in ("streamfrom", "streamfrom-members"):
        service = the("Service", name)["spec"]
        assert service["selector"] == labels
        assert {port["targetPort"] for port in service["ports"]} <= names
    assert the("Service", "streamfrom-members")["spec"]["clusterIP"] == "None"
    assert {source["secretRef"]["name"] for source in container()["envFrom"]} == {
        the("Secret")["metadata"]["name"]
    }
    mounted = {mount["name"] for mount in container()["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod()["spec"]["volumes"]}


def test_the_pod_is_the_images_user() -> None:
    image = (ROOT / "Dockerfile").read_text()
    assert f'"--uid", "{pod()["spec"]["securityContext"]["runAsUser"]}"' in image


# --- HAProxy ---------------------------------------------------------------------------


@needs("haproxy")
def test_haproxy_accepts_its_configuration() -> None:
    run("haproxy", "-c", "-f", EXAMPLES / "haproxy" / "haproxy.cfg")


def test_compose_with_metrics_mounts_what_is_there_and_names_services_that_are():
    known = COMPOSE["services"] | METRICS["services"]
    for name in ("prometheus", "grafana"):
        service = METRICS["services"][name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+", service["image"])
        assert set(service["depends_on"]) <= set(known)
        for mount in service["volumes"]:
            source = mount.partition(":")[0]
            # Paths are those of the first file's folder.
            assert source in METRICS["volumes"] or (ROOT / source).is_file(), mount
        for each in service.get("configs", []):
            assert each["source"] in METRICS["configs"]


def test_prometheus_of_compose_scrapes_where_the_proxy_listens():
    assert METRICS["services"]["prometheus"]["network_mode"] == "service:proxy"
    config = tomllib.loads((EXAMPLES / "streamfrom.toml").read_text())
    scraped = yaml.safe_load((EXAMPLES / "prometheus" / "prometheus.yml").read_text())
    (job,) = scraped["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    assert config["admin"]["listen"] == target.replace("127.0.0.1", "0.0.0.0")


def test_grafana_of_compose_asks_prometheus_where_it_is_and_finds_the_dashboard():
    content = {name: yaml.safe_load(one["content"]) for name, one in METRICS["configs"].items()}
    (source,) = content["datasource"]["datasources"]
    # Who shares a network is found under the name of whose network it is.
    assert source["url"] == "http://proxy:9090"
    (provider,) = content["dashboards"]["providers"]
    (mount,) = (
        one for one in METRICS["services"]["grafana"]["volumes"] if "dashboard.json" in one
    )
    assert Path(mount.split(":")[1]).parent == Path(provider["options"]["path"])


@needs("docker")
def test_docker_merges_the_compose_files(tmp_path):
    has_compose = subprocess.run(
        ["docker", "compose", "version"], capture_output=True, check=False
    )
    if has_compose.returncode:
        pytest.skip("docker has no compose here")
    files = ("-f", ROOT / "compose.yaml", "-f", EXAMPLES / "compose-metrics.yaml")
    run("docker", "compose", *files, "config", "--quiet")
