"""What an account of a server needs for a job."""
