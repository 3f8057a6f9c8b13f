from streamfrom.engine.errors import (
    EngineError,
    ReceiverGone,
    StreamLost,
    TableDropped,
    TableNotFound,
)


def test_a_lost_stream_names_its_shard_and_the_cause():
    assert str(StreamLost("ks", "-80", 30.0, "no route")) == (
        "message stream from ks/-80 has repeatedly failed for longer than 30s: no route"
    )


def test_sentences_name_what_they_are_about():
    assert str(TableNotFound("ks", "t")) == "message table 't' not found in keyspace 'ks'"
    assert str(TableDropped("t")) == "message table 't' was dropped; its streams end"


def test_a_receiver_that_is_gone_is_no_error_of_a_client():
    assert not issubclass(ReceiverGone, EngineError)
