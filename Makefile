# make demo   run the flagship study and print the published numbers beside ours
# make test   run the tests
# make test-slow   run the tests that repeat a fast one at a larger scale
# make pages  fill the numbers of README and documentation in from results/
# make lowest  install the lowest versions that are admitted, and run the flagship study in small
# make release   what a release is held to beside `make test`: lowest versions, other Pythons, the site, the wheel alone
# make docs   build the site of documentation in build/site
# make test-llama   run the tests of examples/llama_cpp; its first time compiles llama.cpp
# make test-clients   run the tests of the server with clients of the OpenAI API, in an environment of their own
# make gpu   run tests, benchmarks and paper presets on a GPU, and write what comes back to build/gpu-out
# make lint   check style; make types: check types
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

CLIENTS := guidellm instructor langchain-openai litellm "lm-eval[api]" outlines

DEVICE := cuda
MINUTES := 10

.PHONY: demo test test-slow test-llama test-clients gpu lowest wheel release pages docs lint types clean

demo: $(VENV)/installed
	$(BIN)/trialogue run dyck-backtracking --preset default --workers 2

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

test-llama: $(VENV)/installed-test
	$(INSTALL) examples/llama_cpp
	$(BIN)/python -m pytest examples/llama_cpp

# The clients pin versions of other packages, so they are installed above the environment of the tests.
test-clients: $(VENV)/installed-test
	test -d build/clients || $(BIN)/python -m venv build/clients
	$(BIN)/python -c "import sysconfig as s; print(s.get_path('purelib'))" > build/clients/tests.pth
	mv build/clients/tests.pth $$(build/clients/bin/python -c "import sysconfig as s; print(s.get_path('purelib'))")
	build/clients/bin/python -m pip install --quiet --disable-pip-version-check $(CLIENTS)
	HF_HUB_OFFLINE=1 PYTHONPATH=src:lab/src build/clients/bin/python -m pytest -n 0 tests/clients

gpu: $(VENV)/installed-test
	$(BIN)/python benchmarks/gpu.py --device $(DEVICE) --minutes $(MINUTES) --out build/gpu-out

lowest: $(VENV)/installed
	$(INSTALL) uv
	rm -rf build/lowest
	$(PYTHON) -m venv build/lowest
	$(BIN)/python -m uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct . ./lab
	build/lowest/bin/trialogue run dyck-backtracking --preset smoke --results build/lowest/results

wheel: $(VENV)/installed-test
	rm -rf dist build/library build/laboratory
	$(BIN)/python -m hatchling build -d dist
	cd lab && ../$(BIN)/python -m hatchling build -d ../dist
	$(PYTHON) -m venv build/library
	build/library/bin/python -m pip install --quiet --disable-pip-version-check dist/trialogue-*.whl
	cd build/library && bin/trialogue distribution --distribution dyck:'{"length": 6}' --sampler ancestral
	cd build/library && ! bin/trialogue run dyck-backtracking
	$(PYTHON) -m venv build/laboratory
	build/laboratory/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build/laboratory && bin/trialogue run dyck-backtracking --preset smoke
	cd build/laboratory && bin/trialogue ledger dyck-backtracking

release: lint types docs lowest wheel
	for python in python3.12 python3.13; do $(MAKE) test PYTHON=$$python VENV=.venv-$$python || exit 1; done

pages: $(VENV)/installed
	$(BIN)/python -m trialogue_lab.cli.summaries
	$(BIN)/python docs/reference.py
	$(BIN)/python docs/document_coverage.py
	$(BIN)/trialogue fill docs/templates/README.md.jinja --measured benchmarks/rows --out README.md
	$(BIN)/trialogue fill $(filter-out %/README.md.jinja,$(wildcard docs/templates/*.jinja)) --measured benchmarks/rows --out docs
	$(BIN)/trialogue fill $(wildcard docs/templates/how-to/*.jinja) --measured benchmarks/rows --out docs/how-to
	$(BIN)/trialogue fill $(wildcard docs/templates/explanation/*.jinja) --measured benchmarks/rows --out docs/explanation

docs: $(VENV)/installed-docs
	$(BIN)/python -m mkdocs build

lint: $(VENV)/installed-test
	$(BIN)/ruff check src lab tests benchmarks examples conftest.py
	$(BIN)/ruff format --check src lab tests benchmarks examples conftest.py
	$(BIN)/codespell src lab benchmarks examples docs README.md CHANGELOG.md
	$(BIN)/proselint check --output-format compact README.md CHANGELOG.md docs
	$(BIN)/python docs/docstrings.py src lab/src benchmarks examples | $(BIN)/proselint check --output-format compact

types: $(VENV)/installed-test
	$(BIN)/mypy

clean:
	rm -rf $(VENV) .venv-* build dist .mypy_cache .pytest_cache .ruff_cache
	find src lab tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml lab/pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable . --editable ./lab
	@touch $@

$(VENV)/installed-test: pyproject.toml lab/pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[test]' --editable ./lab
	@touch $@ $(VENV)/installed

$(VENV)/installed-docs: pyproject.toml lab/pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[docs]' --editable ./lab
	@touch $@
