"""The privileges that a server's account needs for a job: the GRANTs to give it, and the gaps that `streamfrom check` finds."""
