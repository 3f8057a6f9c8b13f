"""The configuration: one TOML file, read once, checked once, frozen.

``file`` reads it whole; ``keyspaces`` its keyspaces and shards; ``dsn`` the address of a server;
``changes`` compares one that was read again with the one in force; ``toml_values`` takes a key's value and says its full path where it is wrong. Nothing else in the proxy
reads a file or the environment to decide how it behaves.
"""
