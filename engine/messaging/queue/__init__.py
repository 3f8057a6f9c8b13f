"""The keys due soonest of one shard, and the polls that find them."""
