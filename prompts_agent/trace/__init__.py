"""Readers of every trace format, and the measurements that turn what they read into one Profile.

discover ─► sniff ─► reader ─► Capture ─► measure ─► Profile
"""
