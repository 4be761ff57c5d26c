"""`python -m prompts_agent` is `prompts`."""

from prompts_agent.cli.main import main

main()
