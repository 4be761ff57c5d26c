"""One file a framework: a layout as the config text that framework reads."""
