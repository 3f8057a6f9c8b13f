"""Several proxies on one table, under a virtual clock: each seed gives one history."""
