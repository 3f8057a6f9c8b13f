"""Passwords as MySQL's two login plugins know them: proofs, stored hashes, and who recognises them. Pure.

* ``scramble``: the proofs of mysql_native_password and caching_sha2_password;
* ``verifier``: recognises a password by any of the hashes.
"""
