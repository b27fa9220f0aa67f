"""What structure a checkpoint has learned: measures that are registered by name, each with its control."""
