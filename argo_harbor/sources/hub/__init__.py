"""Datasets of Harbor's Hub, read with its client and held against every digest."""
