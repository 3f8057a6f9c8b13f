"""`examples/prometheus`: rules and dashboard name what the proxy tells, and promtool's own tests of the rules pass."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from streamfrom.engine.messaging.figures.figures import QueueFigures, ShardFigures
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.proxy.admin.metrics import MetricsPage
from streamfrom.proxy.status.status_rows import MemberStatus, ShardStatus
from tests.cases import cases
from tests.examples.test_deployment import needs, run
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


FOLDER = Path(__file__).parents[2] / "examples" / "prometheus"
# What a scrape adds to every metric, and its own one.
OF_SCRAPE = {"job", "instance"}
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((FOLDER / "grafana-dashboard.json").read_text())


def page() -> bytes:
    """Return every metric that a proxy may tell."""
    member = MemberStatus("a", "1", 1.0, 1, 1, 1, is_stopping=False, certificate_expires_s=1.0)
    of_shard = ShardFigures("0", Counters(), 1, 0, 2, True, 1, 3, 1, parked=1, dead_lettered=1)
    comment = f"{DEFAULT_COMMENT},vt_max_rate=1,vt_max_in_flight=1"
    queue = QueueFigures(loaded(raw_table("msg", comment)), (of_shard,), 1)
    shard = ShardStatus("ks", "0", "h", "10", None, 32, 5, 2, 1)
    page = MetricsPage([shard], member, 2)
    page.add([queue])
    return page.text()


def told() -> dict[str, set[str]]:
    """Return the labels of every metric, by the metric's name."""
    labels: dict[str, set[str]] = {"up": set()}
    for family in text_string_to_metric_families(page().decode()):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return {name: found | OF_SCRAPE for name, found in labels.items()}


TOLD = told()


def faults_of(expression: str, *templates: str) -> list[str]:
    """Return what *expression*, and the texts that its labels are put into, name and no proxy tells."""
    faults = []
    there: set[str] = set()
    for metric, matchers in re.findall(
        r"\b(up|(?:streamfrom|vttablet)_\w+)(?:\{([^}]*)\})?", expression
    ):
        if metric not in TOLD:
            faults.append(metric)
            continue
        there |= TOLD[metric]
        named = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        faults += [f"{metric}{{{label}}}" for label in sorted(named - TOLD[metric])]
    lists = re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", expression)
    named = {label.strip() for labels in lists for label in labels.split(",")}
    for template in templates:
        named |= {a or b for a, b in re.findall(r"\$labels\.(\w+)|\{\{(\w+)\}\}", template)}
    if not there:
        faults.append(f"no metric in {expression}")
    return faults + [f"{label} of {expression}" for label in sorted(named - there)]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_names_what_proxies_tell(rule: dict[str, Any]) -> None:
    assert not faults_of(rule["expr"], rule["annotations"]["summary"])
    assert rule["labels"]["severity"] in {"info", "warning", "critical"}


def test_the_dashboard_names_what_proxies_tell() -> None:
    for panel in panels():
        for target in panel["targets"]:
            assert not faults_of(target["expr"], target["legendFormat"]), panel["title"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(
                r"label_values\((.*), (\w+)\)", variable["query"]["query"]
            ).groups()  # type: ignore[union-attr]
            assert not faults_of(f"sum by ({label}) ({metric})"), variable["name"]


@cases(expression=str)
def test_what_no_proxy_tells_is_found(expression: str) -> None:
    assert faults_of(expression)


def test_every_alert_has_a_test_in_which_it_is_raised() -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
    raised = {
        one["alertname"]
        for test in tests
        for one in test["alert_rule_test"]
        if one["exp_alerts"]
    }
    assert raised == {rule["alert"] for rule in RULES}
    for test in tests:
        for series in test["input_series"]:
            assert not faults_of(series["series"])


def test_the_scrape_configuration_reads_the_rules() -> None:
    document = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    assert document["rule_files"] == ["alerts.yml"]
    (job,) = document["scrape_configs"]
    assert f'job="{job["job_name"]}"' in RULES[0]["expr"]


@needs("promtool")
@pytest.mark.parametrize(
    ("words", "file"), [("check config", "prometheus.yml"), ("test rules", "alerts_test.yml")]
)
def test_promtool_accepts_them(words: str, file: str) -> None:
    run("promtool", *words.split(), FOLDER / file)


@needs("promtool")
def test_promtool_finds_no_fault_in_what_a_proxy_tells() -> None:
    words = ["promtool", "check", "metrics"]
    done = subprocess.run(words, input=page(), capture_output=True, check=False, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_guide_says_how_each_alert_is_ended() -> None:
    guide = (FOLDER.parents[1] / "docs/operations/monitoring.md").read_text()
    told = re.findall(r"^\| `(Streamfrom\w+)` \|", guide, re.MULTILINE)
    assert told == [rule["alert"] for rule in RULES]
