"""What a job prints for its user: a sentence that says what is wrong and what fixes it."""


class JobError(Exception):
    """A job cannot go on; nothing was lost, and the text names the fix."""


class RequestError(JobError):
    """What was asked for cannot be done as asked, and nothing was begun: ask differently."""
