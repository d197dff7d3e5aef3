"""What an operator should look at: rows, limits and tenants that are not as they seem."""
