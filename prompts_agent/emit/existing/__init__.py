"""A config that a user has already, as a layout with the line of every axis.

    read_settings(path) ─► Settings ─► reader of the framework ─► Existing ─► layout

Nothing here loads the framework, and nothing in the file is executed.
"""
