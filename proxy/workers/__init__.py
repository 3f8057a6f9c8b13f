"""Workers: several processes that serve one port, under a parent that restarts them.

* ``supervisor``: the parent, which serves no client itself;
* ``worker_seat``: a worker's inputs at its start, and the socket between it and its parent.
"""
