from streamfrom.proxy.errors.base import InternalError, ProxyError


def test_an_internal_error_tells_where_to_look_and_nothing_else():
    assert str(InternalError(7)) == "internal error (connection 7; the proxy's log says more)"
    assert issubclass(InternalError, ProxyError)
