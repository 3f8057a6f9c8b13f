"""Compile a statement for its shards: the target, the plan, and the text for each shard."""
