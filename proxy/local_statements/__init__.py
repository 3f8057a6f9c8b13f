"""Statements that the proxy answers itself, because no server could.

`proxy.sql.compile.answerers` lists them; ``show_processlist``, ``show_keyspaces`` and ``vexplain`` make the longer replies.
"""
