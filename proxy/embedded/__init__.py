"""MySQL or MariaDB servers that run as children, for the demo and the tests.

``program`` finds what is installed, ``servers`` starts it and makes sure that it stops.
"""
