"""The keys of a message table's comment, each with its unit, default and meaning.

`docs/sql/message-tables.md` has them as a table, so the texts are Markdown and their links are relative to that page.
"""

from __future__ import annotations

from typing import Final


KEYS: Final = {
    "vt_ack_wait": (
        "seconds | required | the time that a consumer has for one message after it was first delivered; messages "
        "that it has not started [wait as long again](../concepts/leases.md)"
    ),
    "vt_purge_after": "seconds | required | acked rows older than this are deleted",
    "vt_batch_size": "rows | required | the most rows that a stream is given at once",
    "vt_cache_size": "ids | required | the most messages that are kept in memory for each shard",
    "vt_poller_interval": "seconds | required | the time between two polls; `CREATE QUEUE` gives 1",
    "vt_min_backoff": "seconds | `vt_ack_wait` | the shortest wait between two deliveries",
    "vt_max_backoff": "seconds | none | the longest wait",
    "vt_max_attempts": (
        "deliveries | 0 | after so many deliveries a message is [parked](../concepts/retries.md#parked-messages); "
        "0 for no limit"
    ),
    "vt_dead_letter": (
        "a table; in `CREATE QUEUE` and `ALTER QUEUE` also `on` | none | the table to which a message moves after "
        "`vt_max_attempts` deliveries, [instead of being parked](../concepts/retries.md#parked-messages). It is in"
        " the same keyspace and named without it; names that begin with `streamfrom_` are reserved"
    ),
    "vt_dead_letters_of": (
        "queues, with blanks between | none | in the comment of the dead letter table: the queues whose dead letters it takes."
        " `CREATE QUEUE` and `ALTER QUEUE` add it"
    ),
    "vt_max_in_flight": (
        "messages | none | the most messages that are [in flight](../concepts/limits.md#concurrency-limit) on "
        "all shards together; at least the number of shards"
    ),
    "vt_max_rate": (
        "messages a second | none | the most messages that are [delivered a "
        "second](../concepts/limits.md#rate-limit) from all shards together; may have a fraction"
    ),
    "vt_message_cols": "`id\\|c\\|…` | all but the hidden | the columns of a stream, in this order, `id` first",
    "vt_release_after": (
        "seconds, or `never` | 5 | when a client's connection ends, the messages of its streams are ready again after"
        " this time; with `never`, when their leases end"
    ),
    "vt_lease": (
        "`lazy`, `written` | `lazy`; `written` with `vt_max_in_flight` | "
        "whether [a first delivery writes its row](../concepts/leases.md) before the message is sent. Use `written` "
        "if other programs take messages directly on the server"
    ),
    "vt_lease_delay": (
        "seconds | 1, at most half of `vt_ack_wait` | when the lease of a first delivery is written if no ack has "
        "come"
    ),
    "vt_ack": (
        "`committed`, `early` | `committed` | `early`: an ack is [answered before it is "
        "written](../concepts/guarantees.md#early-acks)"
    ),
    "vt_prefetch": (
        "messages, or `auto` | `auto` | the most messages that a stream has unacknowledged: a number, 0 for no limit,"
        " or [what its acks show](stream.md#prefetch)"
    ),
    "vt_auto_id": "`on`, `off` | `off` | `on`: an `INSERT` without an `id` [is given one](queues.md#ids)",
    "vt_paused": "`on`, `off` | `off` | `on`: no message is delivered, [everything else works](../concepts/limits.md#pausing)",
    "vt_delayed": (
        "`on`, `off` | `on` | `off`: a statement that would schedule a message for later [is "
        "refused](../concepts/scheduling.md#forbid-scheduled-messages)"
    ),
    "vt_group": "a column | none | the column with the [group](../concepts/batches.md) of a message",
    "vt_after": (
        "a column | none | the column with the [group](../concepts/batches.md) after which a message comes: it is "
        "delivered when that group is done"
    ),
    "vt_shard_by": (
        "`vindex(column)` | | the sharding of a queue that is not in the vschema; `CREATE QUEUE` writes it, do not "
        "change it"
    ),
    "vt_key": (
        "a column | none | the column that messages of a kind share. An index must hold its whole value, and it must "
        "not be `FLOAT`, `DOUBLE` or `BIT`"
    ),
    "vt_max_per_key": (
        "messages | none | how many messages of a key [may have started](../concepts/ordering.md#messages-of-a-key) "
        "on each shard; 1: one by one, in order"
    ),
    "vt_fair": (
        "`on`, `off` | `off` | `on`: keys [take turns](../concepts/ordering.md#fair-scheduling), so that the flood of "
        "one delays no other; needs `vt_key`"
    ),
    "vt_order": (
        "`oldest`, `newest`, `strict` | `oldest` | which ready message goes first within a priority; `strict`: [one "
        "message at a time](../concepts/ordering.md#messages-of-a-key) on each shard"
    ),
}
