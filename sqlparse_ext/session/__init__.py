"""How a statement depends on its session, when no tracker of a server shows it.

Advisory locks that it names, statements that it prepares by SQL, functions whose values only its session has, the client's
identity, and the schemas that it queries by name.
"""
