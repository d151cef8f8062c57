"""What `stream-hc kafka` does beside the daemon: produce, tail, dead letters, reset."""
