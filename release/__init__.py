"""What makes the files of a release."""
