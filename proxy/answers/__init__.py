"""Statements that the proxy answers itself, since no server behind it could.

``virtual`` says which, ``processlist`` and ``show_vschema`` make the longer ones.
"""
