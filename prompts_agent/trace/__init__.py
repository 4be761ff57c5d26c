"""Readers of every trace format, and the measurements that turn what they read into one Profile.

discover ─► sniff ─► reader (xspace · chrome · kineto · nsight · hlo text) ─► Capture ─► measure ─► Profile
"""
