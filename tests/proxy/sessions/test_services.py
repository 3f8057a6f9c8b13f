import pytest

from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.sessions.services import Asker


def user(name, role=Role.USER):
    return User(name, Secret(""), None, role)


def test_an_asker_is_the_user_without_its_secrets():
    assert Asker.of(user("eve")) == Asker("eve", is_admin=False)
    assert Asker.of(user("boss", Role.ADMIN)) == Asker("boss", is_admin=True)


@pytest.mark.parametrize(
    ("asker", "whom", "may"),
    [
        (Asker("eve", is_admin=False), user("eve"), True),
        (Asker("eve", is_admin=False), user("Eve"), False),
        (Asker("eve", is_admin=False), user("boss", Role.ADMIN), False),
        (Asker("eve", is_admin=False), None, False),
        (Asker("boss", is_admin=True), user("eve"), True),
        (Asker("boss", is_admin=True), None, False),
    ],
)
def test_a_user_sees_its_own_and_an_admin_all_who_have_logged_in(asker, whom, may):
    assert asker.may_see(whom) is may
