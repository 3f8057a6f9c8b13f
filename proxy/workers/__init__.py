"""Workers: several processes that serve one port, under a parent that restarts them.

* ``supervisor``: the parent, which serves no client itself;
* ``worker_seat``: what a worker is given when it starts, and the socket by which it and its parent know of each other.
"""
