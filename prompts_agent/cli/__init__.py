"""One file a command: parses, calls, prints.

`main` is the process: signals, exit codes. `app` holds the commands; each imports what it needs
when it runs, so that `--help` and `--version` load nothing of it.
"""
