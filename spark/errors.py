"""The errors of jobs, whose texts name the problem and its fix."""


class JobError(Exception):
    """A job cannot continue. Nothing was lost, and the text names the fix."""


class RequestError(JobError):
    """The request cannot be fulfilled, and nothing was begun: change the request."""
