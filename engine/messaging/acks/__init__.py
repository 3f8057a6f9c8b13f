"""Early acks: kept in memory, then written. `proxy.sql.ack_desk` has the table of which way an ack goes."""
