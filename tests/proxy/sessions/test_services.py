import dataclasses

import pytest

from streamfrom.proxy.sessions.services import Services


def test_sessions_share_what_is_named_here_and_nothing_else():
    fields = {field.name: None for field in dataclasses.fields(Services)}
    services = Services(**fields)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        services.user = {}  # type: ignore[attr-defined]
