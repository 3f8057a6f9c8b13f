"""What an account of a server needs for a job: the GRANTs to give it, and what `streamfrom check` finds missing."""
