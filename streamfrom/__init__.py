"""Vitess-style messaging in front of any MySQL or MariaDB.

The four packages are folders at the top of the repository; here they have their import names.
"""

__version__ = "0.1.0"
