"""The MySQL wire protocol as pure functions and state machines: bytes in, bytes out.

No module opens a socket, waits, reads a clock or the environment, or draws random numbers. Three rules hold everywhere: a
stream gives the same result however it is cut into pieces; malformed bytes raise ``WireError`` and nothing else; no command
is read before a login has succeeded.

Read it in this order:

* ``constants``, ``codec``, ``framing``: flags, integers and strings, packets;
* ``commands``, ``resultset``: the contents of packets;
* ``login``: the packets before the first command, the server's side of a login, and the proxy's logins at backends;
* ``server_connection``, ``client_connection``: one connection with a client, with a backend;
* ``response_reader``, ``pass_through``, ``resequencer``, ``row_collector``: a backend's answer on its way to the client.
"""
