"""From Django REST framework 3.18.3, as they are: tests/test_throttling.py and its licence."""
