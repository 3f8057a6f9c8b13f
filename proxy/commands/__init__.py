"""The commands that inspect a proxy or start a demo. `streamfrom.proxy.cli` parses their options."""
