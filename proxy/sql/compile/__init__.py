"""From a statement to what its shards run: the target, the plan, and the texts for each shard."""
