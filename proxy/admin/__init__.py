"""The HTTP side of a running proxy: liveness, readiness, figures, and the status page.

``admin_server`` answers `/healthz`, `/readyz`, `/metrics` and `/api`, and serves the page;
``metrics`` makes the text for Prometheus; ``history`` makes the page's figures, with
the last hour of each queue; ``admin_gate`` handles logins and sessions; ``queue_api`` has the
paths by which the page reads messages (``queue_messages``) and acts.
"""
