"""What a statement has to do with the session that sends it, and no tracker of a server shows.

Advisory locks that it names, statements that it prepares by SQL, functions whose values only its session has, who the client
is, and the schemas that it asks about by name.
"""
