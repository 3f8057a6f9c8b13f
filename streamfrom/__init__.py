"""A message queue inside the MySQL or MariaDB you already run.

The four packages are folders at the top of the repository; here they have their import names.
"""

__version__ = "0.1.0"
