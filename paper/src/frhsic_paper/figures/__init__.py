"""Figures as functions of records; nothing here is drawn on a screen."""
