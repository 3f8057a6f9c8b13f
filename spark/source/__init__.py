"""The data source "streamfrom": message tables for `spark.read`, `spark.readStream`, `df.write` and `df.writeStream`.

`options` checks the user's options, and `spark.table_schema` maps the types. `batch` reads,
`writer` writes. `queue` streams due messages, with `claims` and `offsets`, and `acked_stream` acknowledged ones.
"""

from streamfrom.spark.source.format import MessageSource, register


__all__ = ["MessageSource", "register"]
