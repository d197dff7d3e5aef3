"""What callers are told: header fields, problem documents, and the responses that carry them."""
