from streamfrom.engine.fleet.link_elsewhere import ARRIVALS_MAX, Arrivals


def joined(*dispatchers):
    arrivals = Arrivals()
    for dispatcher in dispatchers:
        arrivals.joined(dispatcher)
    return arrivals


def test_what_came_before_a_delivery_with_progress_is_passed_by_whoever_sent_it():
    arrivals = joined("a", "b", "c")
    arrivals.came("a", 2)
    arrivals.came("b", 3)
    arrivals.came("a", 1)
    arrivals.came("c", 1)
    assert arrivals.progressed("a", 0) == {"b": 0, "c": 0}
    assert arrivals.progressed("a", 2) == {"b": 3, "c": 0}
    assert arrivals.progressed("b", 0) == {"a": 2, "c": 0}, "passed by already"
    assert arrivals.progressed("c", 0) == {"a": 3, "b": 3}
    assert arrivals.progressed("c", 5) == {"a": 3, "b": 3}, "rows that never came"


def test_a_stream_without_progress_is_remembered_up_to_a_bound():
    arrivals = joined("a", "b")
    for _ in range(ARRIVALS_MAX + 3):
        arrivals.came("a", 1)
    assert arrivals.progressed("b", 0) == {"a": 3}
