"""Logins, on both sides: of clients at the proxy, and of the proxy at servers. Pure."""
