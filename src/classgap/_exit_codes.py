"""Exit codes of the command line, apart from it because its import takes a second."""

SUCCESS, FAILURE, INVALID = 0, 1, 2
INTERRUPTED, TERMINATED = 130, 143  # as shells report Ctrl-C and SIGTERM
