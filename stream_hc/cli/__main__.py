"""`python -m stream_hc.cli` is `stream-hc`."""

from stream_hc.cli import main

if __name__ == "__main__":
    main()
