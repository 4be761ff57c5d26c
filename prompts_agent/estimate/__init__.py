"""Step time and memory of layouts, term by term, with the interval that calibration earned."""
