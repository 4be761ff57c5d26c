"""What XLA's compilers can tell about a layout."""
