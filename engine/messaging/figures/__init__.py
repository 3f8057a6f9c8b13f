"""What a message table holds, read off the schedulers for those who watch."""
