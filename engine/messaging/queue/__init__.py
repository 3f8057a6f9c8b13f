"""The message keys of one shard that are due soonest, and the polls that find them."""
