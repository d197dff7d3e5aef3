"""For other packages, one module for each. None is imported unless somebody asks for it."""
