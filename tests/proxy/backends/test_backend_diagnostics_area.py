import asyncio

from streamfrom.proxy.backends.backend import LastDiagnostics


async def test_at_first_it_says_what_a_new_connection_would():
    left = LastDiagnostics(asyncio.get_running_loop().create_future())
    assert (left.found_rows, left.row_count) == (0, -1)
    assert (left.columns, left.rows) == ((), ())
    assert not left.known.done()
