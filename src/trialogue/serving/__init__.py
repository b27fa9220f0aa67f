"""`trialogue serve`: an endpoint of OpenAI's interface whose requests share the running batches of the engine."""
