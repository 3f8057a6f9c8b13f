"""What the proxy answers itself, or about a statement instead of running it."""
