"""Passwords as MySQL's two login plugins know them: proofs, stored hashes, and who recognises them. Pure.

* ``scramble``: the proofs of mysql_native_password and caching_sha2_password, and the signatures of ed25519;
* ``verifier``: recognises a password by any of the hashes.
"""
