"""Statements that the proxy answers itself, since no server behind it could.

`proxy.sql.compile.answerers` says which; ``show_processlist``, ``show_vitess`` and ``vexplain`` make the longer ones.
"""
