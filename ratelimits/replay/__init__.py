"""What a plan would have refused of the calls in an access log."""
