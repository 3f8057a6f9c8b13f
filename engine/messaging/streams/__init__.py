"""What is known of one open stream: its window, the order and the progress of what it holds, what it lost."""
