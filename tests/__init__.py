"""The suite; tests/README.md says how to run each tier."""
