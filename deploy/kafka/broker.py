"""Apache Kafka on loopback, for tests and for trying things out: one broker, or a cluster of three.

    with Broker() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

From the shell: `python deploy/kafka/broker.py run`.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

if not __package__:  # run as a file
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from deploy.kafka.cluster import Cluster
from deploy.kafka.fetch import UnavailableError, cache_folder, find
from deploy.kafka.process import BrokerError
from deploy.kafka.server import Broker

__all__ = ["Broker", "BrokerError", "Cluster", "UnavailableError", "main"]


def main(arguments: list[str] | None = None) -> int:
    """Run a command, and return how it went: 0 is well, 1 is not, 3 is that no broker can be had."""
    parser = argparse.ArgumentParser(prog="broker.py", description="Apache Kafka on this machine's loopback.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="download the broker, once, and make ready to start quickly")
    commands.add_parser("path", help="print the folder of the downloads")
    run = commands.add_parser("run", help="run until Ctrl-C")
    run.add_argument("--brokers", type=int, default=1, help="1 alone or 3 as a cluster (default: 1)")
    run.add_argument(
        "--port", type=int, default=9092, help="port of the first, 0 for a free one (default: 9092)"
    )
    run.add_argument("--data", type=Path, help="folder for the data; without one they go when it ends")
    asked = parser.parse_args(arguments)
    try:
        if asked.command == "path":
            _say(str(cache_folder()))
        elif asked.command == "fetch":
            _say(f"{find().kind} is ready")
        else:
            return _run(asked.brokers, asked.port, asked.data)
    except UnavailableError as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    except BrokerError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _run(brokers: int, port: int, data: Path | None) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Broker(data, port=port) if brokers == 1 else Cluster(brokers, data, port=port) as broker:
            kept = f"data in {broker.data}" if data else "data are not kept"
            _say(f"{broker.kind} at {broker.bootstrap} ({kept}; Ctrl-C ends it)")
            while broker.alive:
                time.sleep(0.5)
            raise BrokerError(f"{broker.kind} has ended by itself")
    except KeyboardInterrupt:
        return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
