"""A broker, trainers and predictors on loopback: two of them are killed while news stream by."""

import argparse
import logging
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from kafka.errors import KafkaError

from consumers.errors import KafkaProblem
from deploy.cluster_demo.diary import Diary
from deploy.cluster_demo.feeding import Feed
from deploy.cluster_demo.fleet import Fleet
from deploy.cluster_demo.incidents import PredictorKilled, TrainerKilled
from deploy.cluster_demo.job import SHARDS, DemoError, Stage, claim, prepare
from deploy.cluster_demo.screen import Screen
from deploy.cluster_demo.story import count, tell
from deploy.cluster_demo.watching import Watch
from deploy.kafka.broker import Broker, BrokerError, UnavailableError
from deploy.kafka.fetch import find_kafka
from stream_hc.cli.console import out, progress_bar, say, watched
from stream_hc.losses import h_loss
from stream_hc.runtime.warming import compile_kernels

LEAST = 1_000  # documents: time enough for those that were killed to be missed
PREDICTORS = 3
LOOK = 0.1  # seconds
PATIENCE = 90.0  # seconds for anything to happen


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; 0 is that all is as promised, 1 that it is not, 3 that no broker can be had."""
    parser = argparse.ArgumentParser(prog="python -m deploy.cluster_demo", description=__doc__)
    parser.add_argument("--documents", type=int, default=24_000, help="length of the stream (default: 24000)")
    parser.add_argument("--rate", type=float, default=500.0, help="documents a second (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="another stream")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo-output/cluster"),
        help="folder for the files (default: %(default)s)",
    )
    asked = parser.parse_args(arguments)
    if asked.documents < LEAST or not 0 < asked.rate <= asked.documents / 5:
        parser.error(f"--documents: {LEAST} at least, and --rate so that they take 5 seconds")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.getLogger("kafka").addHandler(
        logging.NullHandler()
    )  # what matters is said by those who are concerned
    try:
        claim(asked.output)
    except DemoError as error:
        parser.error(str(error))
    try:
        return _run(asked)
    except UnavailableError as error:
        say(f"error: {error}", "red")
        return 3
    except (BrokerError, DemoError, KafkaError, KafkaProblem) as error:
        say(f"error: {str(error) or type(error).__name__}; the logs are in {asked.output}", "red")
        return 1
    except KeyboardInterrupt:
        say("stopped: nothing runs any more")
        return 130


def _run(asked: argparse.Namespace) -> int:
    out().print("Starting a broker, trainers and predictors on 127.0.0.1: some 20 seconds …")
    with Broker(engine=find_kafka()) as broker:
        stage = prepare(asked.output, broker.bootstrap, asked.documents, asked.seed)
        _warm_up(stage)
        fleet = Fleet(stage, PREDICTORS)
        with closing(fleet), closing(Watch(stage)) as watch, closing(Feed(stage, asked.rate)) as feed:
            diary = Diary()
            trainer = TrainerKilled(fleet, feed, watch, diary)
            predictor = PredictorKilled(fleet, feed, watch, diary)
            with Screen(
                f"{broker.kind} at {broker.bootstrap}", asked.documents, fleet, feed, watch, diary
            ) as screen:

                def look() -> None:
                    for each in (feed, watch):
                        each.check()
                    for incident in (trainer, predictor):
                        incident.look()
                    screen.look()

                _play(stage, fleet, feed, watch, diary, look)
            counted = count(stage, watch)
            tell(stage, counted, feed, watch, trainer, predictor)
    for problem in counted.problems():
        say(f"error: {problem}: that must not happen; the logs are in {asked.output}", "red")
    return 1 if counted.problems() else 0


def _play(
    stage: Stage, fleet: Fleet, feed: Feed, watch: Watch, diary: Diary, look: Callable[[], None]
) -> None:
    """Let everything happen, in its order; the incidents come by themselves."""
    n_documents = len(stage.news)
    fleet.start()
    diary.add(f"{2 * SHARDS} trainers start, two for each half of the taxonomy, and {PREDICTORS} predictors")
    _wait(fleet.is_in_order, look, "not all have begun")
    diary.add("all are in place: the news begin")
    feed.start()
    _wait(lambda: feed.is_done, look, "the news do not arrive", n_documents / feed.rate)
    diary.add("all news are sent")
    _wait(lambda: watch.n_predictions >= n_documents, look, "predictions are missing")
    _wait(
        lambda: all(watch.published[shard][-1].learned >= n_documents for shard in range(SHARDS)),
        look,
        "labels are not learned",
    )
    _wait(fleet.is_in_order, look, "those that were killed have not come back")
    diary.add("everything is predicted and learned, and the killed ones are back: all may end")
    look()
    fleet.stop()


def _wait(done: Callable[[], bool], look: Callable[[], None], otherwise: str, more: float = 0.0) -> None:
    end = time.monotonic() + PATIENCE + more
    while not done():
        look()
        if time.monotonic() > end:
            raise DemoError(f"{otherwise}, after {PATIENCE + more:.0f} s")
        time.sleep(LOOK)


def _warm_up(stage: Stage) -> None:
    """Compile what is not compiled yet, once: or each of the processes would, all at the same time."""
    with progress_bar("compiling", None, watched(output_is_stdout=False)) as update:
        update(0, "once, in a new installation")
        compile_kernels(stage.config)
        h_loss(stage.news.taxonomy, stage.news.labels[:1], stage.news.labels[:1])


if __name__ == "__main__":
    sys.exit(main())
