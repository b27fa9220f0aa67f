"""`trialogue serve`: an endpoint with the OpenAI API, whose requests share the running batches of the engine."""
