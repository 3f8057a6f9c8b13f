"""The configuration: one TOML file, read once, checked once, frozen.

``file`` reads it whole; ``keyspaces`` its keyspaces and shards; ``dsn`` the address of a server;
``changes`` compares a reloaded one with the one in force; ``toml_values`` reads the value of a key and reports its full path if it is wrong. Nothing else in the proxy
reads a file or the environment to decide how it behaves.
"""
