"""A proxy as its operator sees it: `/metrics`, the page's JSON, SQL, and the guide of docs/operations/troubles.md."""

import json
import re
import ssl
import urllib.request
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families
from pymysql.connections import Connection

from tests.fixtures.printed_steps import PrintedSteps
from tests.fixtures.running_proxy import HERE, RunningProxy


ADMIN = '[admin]\nlisten = "127.0.0.1:0"\n'
KEYSPACE = "commerce"
QUEUE = "my_message"
# The tests' certificates are signed by nobody.
TRUSTING = ssl.create_default_context()
TRUSTING.check_hostname = False
TRUSTING.verify_mode = ssl.CERT_NONE
RULES = {
    rule["alert"]: str(rule["expr"])
    for group in yaml.safe_load((HERE / "examples/prometheus/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}


class Operated:
    def __init__(self, proxy: RunningProxy) -> None:
        self.proxy = proxy
        (self.address,) = re.findall(r"(https?://127\.0\.0\.1:\d+)/metrics", proxy.log())

    def client(self) -> "Connection[Any]":
        return self.proxy.connect(database=KEYSPACE, autocommit=True)

    def metric(self, alert: str, name: str, **labels: str) -> float | None:
        """Return a sample of `/metrics`, one that *alert* looks at; None where nothing is told."""
        assert name in RULES[alert]
        for family in text_string_to_metric_families(self._get("/metrics")):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return float(sample.value)
        return None

    def of_queue(self, alert: str, name: str) -> float | None:
        return self.metric(alert, name, keyspace=KEYSPACE, queue=QUEUE)

    def page(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._get("/api/overview"))
        return found

    def queue(self) -> dict[str, Any]:
        (found,) = (one for one in self.page()["queues"] if one["queue"] == QUEUE)
        return dict(found)

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(
            f"{self.address}{path}", timeout=60, context=TRUSTING
        ) as answer:
            text: str = answer.read().decode()
        return text


def troubles() -> dict[str, str]:
    """Return what the guide says of each trouble, by its heading."""
    guide = (HERE / "docs/operations/troubles.md").read_text()
    parts = re.split(r"^## (.+)$", guide, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def steps_of(trouble: str) -> PrintedSteps:
    return PrintedSteps(troubles()[trouble])
