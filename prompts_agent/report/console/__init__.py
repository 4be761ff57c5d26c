"""The report as a page for a terminal, a pipe or a log; `page.print_report` prints it."""
