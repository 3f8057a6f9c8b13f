"""The HTTP side of a running proxy: is it alive, is it ready, and what does it see.

``admin_server`` answers `/healthz`, `/readyz`, `/metrics` and `/api`, and serves the page;
``metrics`` has what Prometheus reads; ``history`` is what the page shows, with
the last hour of each queue; ``admin_gate`` lets people in, and remembers them; ``queue_api`` has the
paths by which the page reads messages (``queue_messages``) and acts.
"""
