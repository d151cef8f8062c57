"""Ask the daemon of this container how it is: `health.py /healthz`, or `/readyz`; 0 is well, 1 is not.

Where to ask is in the configuration of the job, table [http], or in the variables that count more. Nothing of
stream_hc is imported: this runs every few seconds, and takes a twentieth of one.
"""

import http.client
import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG = "/etc/stream-hc/job.toml"
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # where it listens, and where it is asked then
SECONDS = 4.0


def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Print the answer, and return the exit code."""
    path, config = [*arguments, CONFIG][:2]
    try:
        status, answer = ask(path, http_table(config, environment))
    except (OSError, ValueError, http.client.HTTPException) as error:
        status, answer = 0, str(error) or type(error).__name__
    sys.stdout.write(f"{path}: {status or 'no answer'}: {answer.strip()[:500]}\n")
    return 0 if status == 200 else 1


def http_table(config: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return host, port and token_file; paths in the file are relative to its folder."""
    table = tomllib.loads(Path(config).read_text("utf-8")).get("http", {})
    if table.get("token_file", "none") != "none":
        table["token_file"] = Path(config).parent / table["token_file"]
    given = {key: environment.get(f"STREAM_HC_HTTP_{key.upper()}") for key in ("host", "port", "token_file")}
    return {"host": "127.0.0.1", "port": 9464, "token_file": "none", **table} | {
        key: value for key, value in given.items() if value
    }


def ask(path: str, table: Mapping[str, Any]) -> tuple[int, str]:
    """Return the status and the text of the answer; no proxy is asked."""
    headers = {}
    if (token_file := table["token_file"]) != "none":
        headers["Authorization"] = f"Bearer {Path(token_file).read_text('utf-8').strip()}"
    host = EVERYWHERE.get(table["host"], table["host"])
    connection = http.client.HTTPConnection(host, int(table["port"]), timeout=SECONDS)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(10_000).decode("utf-8", "replace")
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
