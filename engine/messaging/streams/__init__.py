"""One open stream: its window, the order and the progress of its messages, and the messages it lost."""
