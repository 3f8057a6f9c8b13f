"""A running proxy: its parts, how it starts and stops, and the effects of a hangup.

* ``application``: builds every part, opens the listeners, closes them;
* ``config_reload``: applies a reloaded configuration;
* ``disconnection``: how clients are disconnected;
* ``membership``: this process as a member of its fleet.
"""
