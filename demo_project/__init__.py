"""A small API that sells three plans, to try ratelimits with."""
