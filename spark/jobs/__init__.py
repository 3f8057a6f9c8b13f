"""Jobs over message tables. `JOBS` is where a job is registered: its name and what it does.

A job is the module `spark.jobs.NAME` with what `spark.jobs.job.Job` asks for; the command line
and every listing follow from that. `analytics` measures a queue, `enqueue` feeds one, `consume` works through it, `archive` keeps
acknowledged messages as Parquet and then purges them, `replay` brings those back, and `reshard` moves a table. `reading` and
`writing` are how rows come and go, `manifest` is what an archive publishes, and `progress` says how
far a job is.
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
