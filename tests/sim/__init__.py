"""Several proxies on one table, under a virtual clock: one seed is one history."""
