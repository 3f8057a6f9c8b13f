"""The hot path: a statement that one shard answers is sent in the turn of the loop it came in.

No task, no future, no copy of the answer. What is not plain, or not at hand, is left to
`statements.Statements.run`; so is a second attempt after a failover.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.catalog import Direct
from proxy.executor import is_repeatable, was_refused_undone
from proxy.preparation import Step
from proxy.routing import OneShard, qualifiers
from proxy.virtual import is_virtual
from proxy.wire.commands import query
from sqlparse_ext.errors import StreamfromError
from sqlparse_ext.statements import Kind, Uses


if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.registry import Registry
    from proxy.catalog import View
    from proxy.executor import Executor
    from proxy.net import Link
    from proxy.preparation import Preparation
    from proxy.relay import Relay
    from proxy.reply import Reply
    from proxy.shard import ShardRuntime
    from sqlparse_ext.statements import Shape


_KINDS: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.SHOW}
)
_INDIRECT_USES: Final = Uses.MULTIPLE | Uses.LAST_INSERT_ID
_SHAPES_MAX: Final = 8192


class DirectPath:
    """The hot path of one session."""

    def __init__(
        self, preparation: Preparation, executor: Executor, registry: Registry, link: Link
    ) -> None:
        self._preparation = preparation
        self._executor = executor
        self._registry = registry
        self._link = link

    def send(
        self, sql: bytes, reply: Reply, on_done: Callable[[Relay, ShardRuntime, Step], None]
    ) -> bool:
        """Send the statement if it is plain and everything for it is at hand.

        Return False otherwise; the long way then says what is wrong with it, if anything is.
        """
        preparation = self._preparation
        view = preparation.view
        if view is None:
            return False
        try:
            statement = preparation.parse(sql)
            direct = self._known(view, statement.shape)
            if direct is None:
                return False
            if direct.touches_messages:
                step = preparation.step(view, statement)
                plan = view.planner.plan(step.statement.shape)
            else:
                step = Step(statement)
                plan = direct.plan
            route = plan.always or plan.route(step.statement)
        except StreamfromError:
            return False
        if type(route) is not OneShard:
            return False
        shard = view.runtime(route.shard)
        return self._executor.send_now(
            shard,
            view.database,
            query(step.statement.sql),
            reply,
            lambda relay: on_done(relay, shard, step),
        )

    def finish(self, relay: Relay, shard: ShardRuntime, step: Step, reply: Reply) -> bool:
        """End what `send` began; False when it should be tried again the long way.

        Raises:
            BackendLost, SessionLost: the answer broke off.
        """
        scanner = relay.scanner
        shape = step.statement.shape
        executor = self._executor
        if relay.failure is None and scanner.error is None:
            executor.settle(shard, shape, relay)
            if step.effect is not None:
                insert_id = scanner.ok.last_insert_id if scanner.ok else 0
                executor.branches.happened(shard, step.table, step.effect, insert_id)
            self._link.write(relay.held)
            return True
        may_repeat = not executor.branches.in_transaction and not relay.has_written
        if relay.failure is not None:
            reply.broke_off(scanner)
        executor.settle(shard, shape, relay)
        if relay.failure is not None:
            if may_repeat and is_repeatable(shape):
                return False
            raise relay.failure
        if may_repeat and was_refused_undone(scanner.error):
            return False
        self._link.write(relay.held)
        return True

    def _known(self, view: View, shape: Shape) -> Direct | None:
        if view.generation != self._registry.generation:
            # Tables came or went: what is a message table may have changed.
            view.direct.clear()
            view.generation = self._registry.generation
        try:
            return view.direct[shape]
        except KeyError:
            if len(view.direct) >= _SHAPES_MAX:
                view.direct.clear()
            direct = view.direct[shape] = self._work_out(view, shape)
            return direct

    def _work_out(self, view: View, shape: Shape) -> Direct | None:
        if (
            shape.kind not in _KINDS
            or shape.uses & _INDIRECT_USES
            or shape.target is not None
            or qualifiers(shape)
            or is_virtual(shape)
        ):
            return None
        touches = self._preparation.touches_messages(view, shape)
        return Direct(view.planner.plan(shape), touches_messages=touches)
