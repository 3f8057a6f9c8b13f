"""MySQL or MariaDB servers that run as children, for the demo and the tests."""
