"""Implementation of `trialogue serve`, an HTTP server with the OpenAI API.

Concurrent requests are processed in common batches.
"""
