from streamfrom.engine.errors import (
    EngineError,
    ReceiverGone,
    StreamLost,
)


def test_a_lost_stream_names_its_shard_and_the_cause():
    assert str(StreamLost("ks", "-80", 30.0, "no route")) == (
        "message stream from ks/-80 has repeatedly failed for longer than 30s: no route"
    )


def test_a_receiver_that_is_gone_is_no_error_of_a_client():
    assert not issubclass(ReceiverGone, EngineError)
