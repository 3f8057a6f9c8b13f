"""Workers and producers for streamfrom's queues.

A worker takes messages from queues and calls your functions with them. A producer inserts messages
in your own transaction. README.md shows both in ten lines.
"""

from .message import Message
from .outcomes import Outcome, Park, Result, Retry
from .producer import Queue
from .testing import TestQueue
from .worker import Worker


__all__ = ["Message", "Outcome", "Park", "Queue", "Result", "Retry", "TestQueue", "Worker"]
__version__ = "0.1.0"
