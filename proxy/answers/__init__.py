"""Statements that the proxy answers itself, since no server behind it could.

``virtual`` says which, ``processlist``, ``show_vschema`` and ``vexplain`` make the longer ones.
"""
