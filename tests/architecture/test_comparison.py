"""docs/comparison.md claims nothing of this product that no test and no figure shows."""

from pathlib import Path


ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/comparison.md").read_text()


def table(section: str) -> list[list[str]]:
    """Return the cells of the first table of a section, without its head."""
    body = TEXT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


CLAIMED = [feature for feature, ours, *_ in table("Features") if ours != "no"]
SHOWN = {
    "sent in your own transaction": [
        "tests/integration/delivery/test_commit.py",
        "tests/integration/delivery/test_ack.py",
    ],
    "acknowledged in your own transaction": [
        "tests/integration/delivery/test_commit.py",
        "tests/integration/delivery/test_ack.py",
    ],
    "for later, any moment": [
        "tests/integration/delivery/test_moment.py",
        "tests/integration/test_guides.py",
        "docs/benchmarks.md",
    ],
    "moved or cancelled while it waits": [
        "tests/integration/delivery/test_moment.py",
        "tests/integration/test_guides.py",
        "docs/benchmarks.md",
    ],
    "priority": [
        "tests/engine/messaging/queue/test_shard_queue.py",
        "tests/integration/delivery/test_receivers.py",
    ],
    "growing pauses between attempts": [
        "tests/integration/delivery/test_redelivery.py",
        "tests/integration/delivery/test_max_attempts.py",
    ],
    "an end to attempts": [
        "tests/integration/delivery/test_redelivery.py",
        "tests/integration/delivery/test_max_attempts.py",
    ],
    "a dead letter queue": [
        "tests/integration/delivery/test_redelivery.py",
        "tests/integration/delivery/test_max_attempts.py",
    ],
    "a limit of what a consumer holds": ["tests/integration/delivery/test_prefetch.py"],
    "a longer lease for long work": ["tests/integration/delivery/test_prefetch.py"],
    "take n and leave": ["tests/integration/delivery/test_limit.py"],
    "pause and resume": ["tests/integration/delivery/test_paused.py"],
    "order by key": ["tests/integration/delivery/test_order.py", "tests/sim/ordered_queue.py"],
    "fair to tenants": [
        "tests/integration/delivery/test_fair.py",
        "tests/sim/fair_queue.py",
        "bench/workloads/fair.py",
    ],
    "limit of a rate, of all in flight": [
        "tests/integration/delivery/test_send_limits.py",
        "tests/sim/limited_queue.py",
    ],
    "unique messages": ["tests/integration/test_guides.py"],
    "recurring": ["tests/integration/test_guides.py"],
    "a last step for a batch": [
        "tests/integration/queues/test_groups.py",
        "tests/integration/faults/test_fleet_groups.py",
        "tests/sim/grouped_messages.py",
    ],
    "old messages are dropped by the partition": [
        "tests/integration/queues/test_partitions.py",
        "docs/benchmarks.md",
    ],
    "over several shards": [
        "tests/integration/delivery/test_targets.py",
        "tests/integration/test_scatter_property.py",
    ],
    "goes on when a process dies": [
        "tests/integration/faults/test_fleet.py",
        "tests/sim/test_fleet_sim.py",
    ],
    "a page, metrics, alerts": ["tests/proxy/admin", "tests/examples/test_monitoring.py"],
    "read by plain SQL": [
        "tests/integration/test_guides.py",
        "tests/integration/test_routing.py",
    ],
    "read by Spark": ["tests/spark"],
    "in which languages": [
        "docs/drivers.md",
        "tests/integration/test_printed_programs.py",
        "tests/integration/test_consumers.py",
        "tests/integration/test_producers.py",
        "tests/integration/test_message_service.py",
    ],
    "a library for workers": ["tests/integration/test_worker_library.py", "tests/clients"],
}


def test_the_page_claims_something() -> None:
    assert len(CLAIMED) > 20


def test_every_feature_is_shown_somewhere_and_nothing_else() -> None:
    assert set(CLAIMED) == set(SHOWN)


def test_every_proof_is_a_file_of_this_repository() -> None:
    for claim, proofs in SHOWN.items():
        assert proofs, claim
        assert [path for path in proofs if not (ROOT / path).exists()] == [], claim
