"""No models: Django sends post_migrate only to applications with this module."""
