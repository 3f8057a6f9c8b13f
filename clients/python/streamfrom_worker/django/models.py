"""None: Django sends post_migrate to applications that have this module."""
