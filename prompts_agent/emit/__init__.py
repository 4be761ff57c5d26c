"""One file a framework: a layout as the config text that framework reads, and how to check it.

    emit(layout, facts, "maxtext") ─► Config(text, check_command, notes)

What a framework cannot express is refused with the reason, never bent into something near.
"""
