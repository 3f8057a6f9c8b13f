"""The commands that look at a proxy or start a demo. `streamfrom.proxy.cli` reads their options."""
