"""`headrace worker`: one worker of a group, which keeps what it shares with the others in Kafka's topics."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import click

from headrace.cli.run import bound, served, with_log_options
from headrace.config.config_files import read_worker_file
from headrace.config.distributed_config import DistributedConfig
from headrace.herder.statuses import connector_snapshots
from headrace.observe.counts import Counts
from headrace.observe.event_log import EventLog
from headrace.observe.events import to_all
from headrace.observe.log_format import as_logged, configure_logging
from headrace.observe.log_levels import Levels
from headrace.observe.metrics import Metrics
from headrace.observe.secret_masking import printed_as
from headrace.plugins import checked_worker_of
from headrace.rest.config import RestConfig, rest_problems
from headrace.rest.peers import Peers
from headrace.rest.server import RestServer
from headrace.worker import serving_group


@click.command()
@click.argument("worker_config", type=click.Path(path_type=Path))
@with_log_options
def worker(worker_config: Path, *, json_logs: bool, log_level: str) -> int:
    """Run a worker of a group, with WORKER_CONFIG as Kafka Connect's distributed mode has it.

    Connectors are created over REST. Their configurations, offsets and states are in Kafka's topics. Workers with the same group.id divide
    the connectors among them, and others go on with those of a worker that ends.

    Ends with 130 after Ctrl-C and 143 after SIGTERM, when its connectors have been left to another worker. A second signal does not wait for
    that, and a third one ends the process at once.
    """
    configure_logging(log_level.upper(), as_json=json_logs)
    config = checked_worker_of(
        DistributedConfig,
        read_worker_file(worker_config),
        where=str(worker_config),
        folder=worker_config.absolute().parent,
        also=rest_problems,
    )
    with printed_as(as_logged):
        return _serve(config)


def _serve(config: DistributedConfig) -> int:
    rest = RestConfig.parse(config.originals)
    counts, levels = Counts(), Levels()
    with (
        closing(bound(rest)) as binding,
        closing(Peers(rest.trust_context())) as peers,
        serving_group(
            config,
            url=binding.url,
            worker_id=binding.worker_id,
            emit=to_all(EventLog(), counts),
            peers=peers,
            levels=levels,
        ) as herder,
    ):
        # Of its own connectors alone: whoever adds up the group's workers counts each one once.
        snapshots = partial(connector_snapshots, herder, worker_id=binding.worker_id)
        metrics = Metrics(counts, snapshots)
        server = RestServer(
            herder, rest, binding=binding, levels=levels, metrics=metrics.text, peers=peers
        )
        return served(herder, server, hurry=herder.leave_at_once)
