"""The MySQL wire protocol as pure functions and state machines: bytes in, bytes out.

Nothing here opens a socket, waits, asks the clock, rolls dice or reads the environment.
Three promises hold everywhere: any cut of a stream gives the same result; malformed bytes
raise ``WireError`` and nothing else; no command is read before a login has succeeded.

Read it in this order:

* ``constants``, ``codec``, ``framing``: flags, integers and strings, packets;
* ``handshake``, ``commands``, ``resultset``: what the packets say;
* ``auth``, ``client_auth``: who may come in, and how we come
  in elsewhere;
* ``server_connection``, ``client_connection``: one connection with a client, with a backend;
* ``response`` and its parts ``response_reader``, ``pass_through``, ``resequencer``, ``row_collector``: a backend's
  answer on its way to the client.
"""
