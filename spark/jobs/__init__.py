"""Jobs over message tables. `JOBS` registers each job by its name, with a description.

A job is the module `spark.jobs.NAME` with the members of `spark.jobs.job.Job`; the command line
and every listing follow from that. `analytics` measures a queue, `enqueue` feeds one, `consume` processes one, `archive` saves
acknowledged messages as Parquet and then purges them, `replay` restores those, and `reshard` moves a table. `reading` and
`writing` read and insert rows, `manifest` describes a published archive, and `progress` reports the
progress of a job.
"""

from typing import Final


JOBS: Final = {
    "analytics": "measure throughput, delays, retries and what waits, as Parquet and as an HTML page",
    "archive": "keep the acknowledged messages of a window as Parquet, then purge exactly those",
    "consume": "work through a queue with a function of yours, and put aside what it fails on",
    "enqueue": "feed files or a DataFrame into a message table, at once or with a rate",
    "replay": "bring archived messages back into a queue",
    "reshard": "move a table to a keyspace with other shards: plan, copy, verify",
}
