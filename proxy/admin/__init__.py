"""The HTTP side of a running proxy: is it alive, is it ready, and what does it see.

``admin_server`` answers `/healthz`, `/readyz`, `/metrics` and `/api`, and serves the page of ``page_files``;
``metrics`` makes Prometheus's text, ``overview`` what the page shows, ``history`` keeps the last hour of each queue;
``admin_gate`` lets people in, whom ``web_sessions`` remembers; ``queue_actions`` is what an administrator may do.
"""
