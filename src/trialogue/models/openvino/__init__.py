"""Causal language models that are evaluated by OpenVINO (`pip install 'trialogue[openvino]'`)."""
