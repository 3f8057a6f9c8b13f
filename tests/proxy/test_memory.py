import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import ConnectionMemoryExceeded, UserMemoryExceeded
from streamfrom.proxy.memory import Memory, users_memory


def test_what_is_too_much_is_refused_and_a_connection_but_no_user_may_be_given_slack():
    memory = Memory(lambda: 100, ConnectionMemoryExceeded)
    memory.change(100)
    with pytest.raises(ConnectionMemoryExceeded, match="limit 100 bytes exceeded") as caught:
        memory.change(1)
    assert caught.value.wire_code() == (4082, "HY000")
    assert "(connection_memory)" in str(caught.value)
    assert memory.used_bytes == 100
    memory.change(-100)
    memory.belong_to(users_memory(lambda: 150, UserMemoryExceeded)("app"))
    memory.change(120, slack_bytes=100)
    with pytest.raises(UserMemoryExceeded, match="'app' has exceeded the 'user_mem") as refused:
        memory.change(40, slack_bytes=100)
    assert refused.value.wire_code() == (1226, "42000")
    with pytest.raises(ConnectionMemoryExceeded):
        memory.change(1)
    assert memory.used_bytes == 120


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.one_of(
                st.integers(1, 90), st.sampled_from(["release", "app", "batch", "leave"])
            ),
        ),
        max_size=60,
    )
)
def test_a_users_budget_is_the_sum_of_the_connections_and_ends_at_nothing(steps):
    memory_of = users_memory(lambda: 120, UserMemoryExceeded)
    connections = [Memory(lambda: 100, ConnectionMemoryExceeded) for _ in range(3)]
    users: list[str | None] = [None] * 3
    for number, step in steps:
        memory = connections[number]
        if isinstance(step, int):
            before = memory.used_bytes
            try:
                memory.change(step)
            except (ConnectionMemoryExceeded, UserMemoryExceeded):
                assert memory.used_bytes == before
        elif step == "release":
            memory.change(-memory.used_bytes)
        else:
            users[number] = None if step == "leave" else step
            memory.belong_to(None if step == "leave" else memory_of(step))
        for user in ("app", "batch"):
            held = [
                each.used_bytes
                for each, whose in zip(connections, users, strict=True)
                if whose == user
            ]
            assert memory_of(user).used_bytes == sum(held)
    for memory in connections:
        memory.belong_to(None)
    assert memory_of("app").used_bytes == memory_of("batch").used_bytes == 0
