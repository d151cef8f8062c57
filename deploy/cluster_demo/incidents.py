"""What goes wrong on purpose: a trainer and a predictor are killed while they work."""

import time

from deploy.cluster_demo.diary import Diary, listed
from deploy.cluster_demo.feeding import Feed
from deploy.cluster_demo.fleet import Fleet, Member
from deploy.cluster_demo.watching import Watch

__all__ = ["PredictorKilled", "TrainerKilled"]

AT_TRAINER, AT_PREDICTOR = 0.35, 0.6  # of the stream


class TrainerKilled:
    """One that learns is killed, the one that stands by takes over, the killed one is started again.

    `look` is called all the time, and does the next thing as soon as it is time for it.

    Attributes
    ----------
    victim, heir
        Who was killed, and who took over.
    at
        When, in seconds since the beginning.
    learning, publishing
        Seconds until the shard was learned again, and until it had a newer model.
    is_over
        Whether the killed one was started again.
    """

    def __init__(self, fleet: Fleet, feed: Feed, watch: Watch, diary: Diary) -> None:
        self._fleet, self._feed, self._watch, self._diary = fleet, feed, watch, diary
        self.victim: Member | None = None
        self.heir: Member | None = None
        self.at = self.learning = self.publishing = 0.0
        self.is_over = False

    def look(self) -> None:
        """Do what is next."""
        if self.is_over or self._feed.share < AT_TRAINER:
            return
        if self.victim is None:
            self._kill()
        elif self.heir is None:
            self._see_who_learns(self.victim)
        else:
            self._see_what_comes(self.victim)

    def _kill(self) -> None:
        doing = self._fleet.doing()
        learning = [each for each, now in doing.items() if each.shard is not None and now.kind == "works"]
        if not learning:
            return
        self.victim = learning[0]
        self.victim.kill()
        self.at = self._diary.now()
        self._diary.add(f"kill -9 {self.victim.name}, which learned shard {self.victim.shard}", bad=True)

    def _see_who_learns(self, victim: Member) -> None:
        assert victim.killed is not None
        for member, now in self._fleet.doing().items():
            if member.shard == victim.shard and now.kind == "works":
                self.heir, self.learning = member, time.time() - victim.killed
                self._diary.add(
                    f"{member.name} has taken over shard {victim.shard}, after {self.learning:.1f} s"
                )

    def _see_what_comes(self, victim: Member) -> None:
        killed, newest = victim.killed, self._watch.published[victim.shard or 0][-1]
        assert killed is not None
        if newest.saved > killed:
            self.publishing, self.is_over = time.time() - killed, True
            self._diary.add(f"shard {victim.shard} has a newer model, after {self.publishing:.1f} s")
            victim.start()
            self._diary.add(f"{victim.name} is started again, to stand by")


class PredictorKilled:
    """One that predicts is killed, the others take its partitions, the killed one is started again.

    Attributes
    ----------
    victim, partitions
        Who was killed, and what it had.
    at
        When, in seconds since the beginning.
    answering
        Seconds until there were predictions again in all of its partitions.
    is_over
        Whether the killed one was started again.
    """

    def __init__(self, fleet: Fleet, feed: Feed, watch: Watch, diary: Diary) -> None:
        self._fleet, self._feed, self._watch, self._diary = fleet, feed, watch, diary
        self.victim: Member | None = None
        self.partitions: tuple[int, ...] = ()
        self.at = self.answering = 0.0
        self.is_over = False

    def look(self) -> None:
        """Do what is next."""
        if self.is_over or self._feed.share < AT_PREDICTOR:
            return
        if self.victim is None:
            self._kill()
        elif self._watch.resumed.keys() >= set(self.partitions):
            self._go_on(self.victim)

    def _kill(self) -> None:
        """Kill the one that has most to do."""
        doing = self._fleet.doing()
        busiest = max(doing, key=lambda member: len(doing[member].partitions))
        if not doing[busiest].partitions:
            return
        self.victim, self.partitions = busiest, doing[busiest].partitions
        self.victim.kill()
        assert self.victim.killed is not None
        self._watch.expect(self.partitions, self.victim.killed)
        self.at = self._diary.now()
        had = listed("partition", self.partitions)
        self._diary.add(f"kill -9 {self.victim.name}, which answered {had}", bad=True)

    def _go_on(self, victim: Member) -> None:
        assert victim.killed is not None
        self.answering = max(self._watch.resumed[each] for each in self.partitions) - victim.killed
        had = listed("partition", self.partitions)
        self._diary.add(f"the other predictors answer {had}, after {self.answering:.1f} s")
        victim.start()
        self._diary.add(f"{victim.name} is started again, and gets its share")
        self.is_over = True
