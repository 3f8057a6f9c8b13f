"""The HTTP side of a running proxy: is it alive, is it ready, and what does it see.

``metrics`` makes Prometheus's text, ``admin_server`` answers `/healthz`, `/readyz`, `/metrics` and `/api`.
"""
