"""Where a statement runs: ``planner`` makes a plan of its shape and a route of its values. Pure."""
