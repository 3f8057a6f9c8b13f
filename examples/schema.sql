-- The message table, on every shard. The comment makes it a message table; durations are in seconds. The proxy generates the ids.
CREATE TABLE my_message (
  id BIGINT NOT NULL,
  priority TINYINT NOT NULL DEFAULT 50,
  epoch BIGINT NOT NULL DEFAULT 0,
  time_next BIGINT DEFAULT 0,
  time_acked BIGINT DEFAULT NULL,
  tenant_id BIGINT,
  message JSON,
  PRIMARY KEY (id),
  INDEX poller_idx (time_acked, priority, time_next)
) COMMENT 'vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,vt_cache_size=10000,vt_poller_interval=30,vt_auto_id=on';
