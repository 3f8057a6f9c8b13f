"""What looks wrong about the figures, in words: pure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from streamfrom.spark.jobs.analytics import number_format as say


if TYPE_CHECKING:
    from streamfrom.spark.jobs.analytics.message_facts import Told

_SKEW_NS: Final = 2 * 10**9
# No message waits so long: the column counts something else than was said.
_IMPLAUSIBLE_MS: Final = 5 * 365 * 86_400_000.0


def warnings(
    total: "Mapping[str, Any]",
    waits: "Sequence[Mapping[str, Any]]",
    clocks_ns: "Mapping[str, int]",
    made_ns: int,
    acked_later: int,
    told: "Told",
) -> list[str]:
    """Return a sentence for everything that makes a figure doubtful.

    clocks_ns, made_ns: the times that each shard's clock and this machine's showed at one moment.
    acked_later: the number of messages that were acknowledged well after their shard's time.
    """
    found = []
    if total["skewed"]:
        found.append(
            f"{_messages(total['skewed'])} acknowledged or delivered before being"
            " written: the clocks of producers and consumers disagree. That counts, but no"
            " percentile of a duration includes it."
        )
    early = sum(row["skewed"] for row in waits)
    if early:
        found.append(
            f"{_messages(early)} written in the future and not acknowledged: the clock of a producer"
            " is ahead. No percentile of ages includes that."
        )
    if acked_later:
        found.append(
            f"{_messages(acked_later)} acknowledged in the future, and so in no window yet: the clock of a"
            " consumer is ahead."
        )
    for shard, clock_ns in sorted(clocks_ns.items()):
        ahead_ns = clock_ns - made_ns
        if abs(ahead_ns) > _SKEW_NS:
            side = "ahead of" if ahead_ns > 0 else "behind"
            found.append(
                f"The clock of shard {shard} is {say.duration(abs(ahead_ns) / 1e6)} {side} this"
                " machine's."
            )
    unknown = total["acked"] - total["to_ack_known"] - total["skewed"]
    if told.created and unknown > 0:
        found.append(f"{_messages(unknown)} acknowledged without a time in {told.created}.")
    for many, percentile in (
        ("Half of all messages", "p50"),
        ("One message in a hundred", "p99"),
    ):
        if (total[f"to_ack_{percentile}_ms"] or 0) > _IMPLAUSIBLE_MS:
            found.append(
                f"{many} took years: {told.created} hardly holds times, or counts something else than"
                " --time-unit says."
            )
            break
    return found


def _messages(many: int) -> str:
    return "1 message was" if many == 1 else f"{say.count(many)} messages were"
