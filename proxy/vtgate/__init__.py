"""Vitess's message API: MessageStream and MessageAck over gRPC, as clients of Vitess 5 call them."""
