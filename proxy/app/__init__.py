"""A running proxy: what it is made of, how it starts and stops, and what a hangup changes.

* ``application``: builds every part, opens the listeners, closes them;
* ``config_reload``: puts a configuration that was read again into force;
* ``disconnection``: how clients are disconnected;
* ``membership``: this process as a member of its fleet.
"""
