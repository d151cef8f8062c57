"""Write `configuration.md`: `python docs/configuration.py`. All keys come from the structs themselves."""

from pathlib import Path

from stream_hc.cli.configuring import toml_value
from stream_hc.runtime.config import KEYS, TABLES, hidden, summary_of

PAGE = """\
# Configuration of a job

Every value comes from the first of these that gives it:

1. an option of the command, such as `--set refit.window=5000`;
2. a variable, `STREAM_HC_` with table and key in capitals: `STREAM_HC_REFIT_WINDOW=5000`;
3. the TOML file of the job;
4. the default.

```
stream-hc config init job.toml    # a file with every key, its meaning and its default
stream-hc config check job.toml   # every value and its origin; are all files there, is the taxonomy sound?
stream-hc config show job.toml    # the same without a look at other files
```

`check` and `show` take `--set` and, for programs, `--json`. What is wrong is listed on standard error, one
line each with the place and the remedy, and the exit code is 3.

```toml
{example}```

* **Files.** Paths in the file are relative to its folder, those in variables and options to where the command
  is run. `-` is standard input or output.
* **None.** Where a key may be nothing, `"none"` says so, also in the file; a file of that name is `./none`.
* **Variables.** A list is written with commas, `STREAM_HC_MODEL_LEARNERS=h-arow,node-pa`, the parameters of
  learners as JSON, `STREAM_HC_MODEL_SETTINGS='{{"h-arow": {{"r": 0.5}}}}'`. An empty variable is not set, an
  unknown key of a known table is a mistake.
* **Learners.** Their parameters are put together one by one: `--set h-arow.r=0.5` leaves the others of the
  file alone. `hm3` is the name of the re-fitted model, whose parameters are in `[refit]`.
* **Secrets.** There are none here; a key that ends in password, token or secret would be shown as `***`.

## All keys

{keys}

This page is written by `python docs/configuration.py`.
"""
EXAMPLE = """\
[stream]
documents = "docs.jsonl"
labels = "labels.jsonl"     # they arrive later and are matched by id
output = "predictions.jsonl"
follow = true               # go on when more lines are written

[model]
taxonomy = "taxonomy.tsv"
learners = ["h-arow", "node-pa"]

[model.settings.h-arow]
r = 0.5

[refit]
enabled = true
window = 8000
every = "none"              # by time and on drift only
seconds = 600

[state]
folder = "state"
"""


def page() -> str:
    """Return the page."""
    return PAGE.format(example=EXAMPLE, keys="\n\n".join(map(keys_of, TABLES)))


def keys_of(table: str) -> str:
    """Return the keys of a table as Markdown."""
    lines = [
        f"**`[{table}]`** {summary_of(table)}",
        "",
        "| key | default | takes | meaning |",
        "|---|---|---|---|",
    ]
    for key in KEYS.values():
        if key.table == table:
            default = f"`{toml_value(hidden(key.name, key.default))}`"
            cells = (f"`{key.field}`", default, key.allowed, key.meaning)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
