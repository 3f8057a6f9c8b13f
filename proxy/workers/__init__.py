"""Workers: several processes that serve one port, under a parent that starts them anew.

* ``supervisor``: the parent, which serves nobody itself;
* ``worker_seat``: what a worker is told when it starts, and the socket by which it and its parent know of each other;
* ``restart_delay``: how long the parent waits before it starts one anew.
"""
