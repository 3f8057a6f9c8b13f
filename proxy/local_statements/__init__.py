"""Statements that the proxy answers itself, since no server behind it could.

`proxy.sql.compile.answerers` says which; ``show_processlist``, ``show_keyspaces`` and ``vexplain`` make the longer ones.
"""
