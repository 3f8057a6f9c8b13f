import dataclasses

import pytest

from proxy.sessions.services import Services


def test_what_sessions_share_cannot_be_changed():
    fields = {field.name: None for field in dataclasses.fields(Services)}
    services = Services(**fields)  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        services.users = {}  # type: ignore[misc]
