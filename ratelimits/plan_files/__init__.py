"""Plans as code: what is sold and what protects the service, as a file of TOML."""
