"""Passwords for MySQL's two login plugins: proofs, stored hashes, and their verification. Pure.

* ``scramble``: the proofs of mysql_native_password and caching_sha2_password, and the signatures of ed25519;
* ``verifier``: verifies a password by any of the hashes.
"""
