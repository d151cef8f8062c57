#!/bin/bash
# Makes the topics that job.toml names; those that are there stay as they are.
set -euo pipefail

make_topic() { # NAME [SETTING...]
    local name=$1 settings=()
    for setting in "${@:2}"; do settings+=(--config "$setting"); done
    "${KAFKA_BIN:-/opt/kafka/bin}/kafka-topics.sh" --bootstrap-server "$BOOTSTRAP" --create --if-not-exists \
        --topic "$name" --partitions 1 --replication-factor 1 "${settings[@]}"
}

# What is gone from these cannot be learned again after a crash: kept for two weeks.
make_topic documents retention.ms=1209600000
make_topic labels retention.ms=1209600000
make_topic predictions retention.ms=604800000
# The longest record there may be, with the reason beside it.
make_topic dead-letters retention.ms=2592000000 max.message.bytes=2097164
make_topic model-events retention.ms=2592000000
