"""Property tests here measure nothing, so a busy machine must not fail them."""

from hypothesis import settings


settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
