"""What the backends' accounts may do, and which users only the proxy holds back.

* ``grants``: what SHOW GRANTS says of an account; pure;
* ``privilege_audit``: which users a server would stop and which it would not, with the statements that cure it; pure;
* ``grant_discovery``: asks the servers of a configuration.
"""
