"""The data source "streamfrom": message tables for `spark.read`, `readStream`, `write` and `writeStream`.

`MessageSource` is the manual. `options` checks what the user gives, `tables` knows types, `batch` reads, and `pushing` with `filters` does
where Spark may push these down; `values` and `writer` write. `queue` streams what is due, with `claims`, `lease` and `offsets`, and `feed`
what was acknowledged.
"""

from streamfrom.spark.source.format import MessageSource, register


__all__ = ["MessageSource", "register"]
