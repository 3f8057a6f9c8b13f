"""The test suite; tests/README.md explains how to run each tier."""
