"""Transactions over several shards that commit everywhere or nowhere: `transaction_mode = "twopc"`.

The first shard of a transaction runs an ordinary one, every other shard a branch of XA. At COMMIT
the proxy writes a row into the table `streamfrom.decisions` of the first shard, *inside its
transaction*; then every other branch is prepared; then the first shard commits. That commit is
the decision: the row exists if and only if the transaction is committed. `xid` names the branches,
`decisions` keeps the table, `coordinator` runs a commit, `triage` decides what a look at all
shards means, and `recovery` finishes what a proxy left behind that died half way.

Why two recoverers, or a recoverer and a living proxy, never disagree: a branch is prepared only
after the row was written, and from then on the row is locked until the first shard's transaction
ends. So a proxy that finds a prepared branch and reads the row with a lock learns one of three things:
it is there (committed), it is not (rolled back, and no proxy can commit any more, because the
transaction that would have is gone), or it is locked (undecided, its proxy is alive). A row goes
only when every branch is known to have ended.
"""
