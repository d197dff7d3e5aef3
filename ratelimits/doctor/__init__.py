"""What is found when somebody looks at the limits of a running project: one look, never a fault."""
