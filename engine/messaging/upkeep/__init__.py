"""What keeps tables small and readable: the statements of purge, partitions, dead letters, depths, and looks at messages."""
