"""What can be seen of a job on topics while it runs: its own numbers, over HTTP."""

import json
import time
import urllib.request

import pytest

from deploy.kafka.settings import free_port
from tests.kafka.daemons import World

pytestmark = [pytest.mark.compiled, pytest.mark.kafka]


def test_lag_transactions_and_readiness_are_told(kafka, tmp_path):
    here, port = World(kafka, tmp_path), free_port()
    here.produce(here.records(1000))

    def get(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.read().decode()

    with here.daemon("--http", port) as process:
        here.await_predictions(1000, process)
        assert get("/readyz") == "ready\n"
        name = f'streamhc_consumer_lag_records{{partition="0",topic="{here.topics["documents"]}"}} 0.0'
        end = time.monotonic() + 20
        while name not in get("/metrics") and time.monotonic() < end:
            time.sleep(0.2)
        lines = get("/metrics").splitlines()
        assert name in lines
        (committed,) = [line for line in lines if line.startswith("streamhc_transactions_total{")]
        assert committed.startswith('streamhc_transactions_total{outcome="committed"}')
        assert float(committed.split()[-1]) >= 4  # batches of 500
        assert "streamhc_documents_consumed_total 1000.0" in lines
        status = json.loads(get("/api/status"))
        assert status["documents"] == status["labelled"] == 1000
        assert status["lag"] == [{"topic": here.topics["documents"], "partition": 0, "records": 0}]
        assert here.stop(process) == 0
