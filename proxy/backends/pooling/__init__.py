"""The connections to one server that sessions share: who gets which, who waits, and how one is handed on."""
