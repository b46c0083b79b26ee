# Everything happens in .venv, which is made on first use from pyproject.toml and constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test pytest test-slow check lint types format bench pictures docs clean

demo: .venv/installed
	$(BIN)/classgap demo

test: lint  # mypy takes a minute, but only one core
	@$(MAKE) --no-print-directory -j 2 types pytest

pytest: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow
	$(BIN)/python -m pytest -n 2 experiments/tests

check: lint types

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/installed
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/installed
	$(BIN)/python benchmarks/loss_cost.py
	$(BIN)/python benchmarks/data_cost.py
	$(BIN)/python benchmarks/train_cost.py
	$(BIN)/python benchmarks/budget_cost.py
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/sklearn_cost.py
	$(BIN)/python benchmarks/audit_cost.py

pictures: .venv/installed
	$(BIN)/python benchmarks/case_study_pictures.py

docs: .venv/installed
	$(BIN)/python docs/generate_methods.py
	$(BIN)/python docs/generate_results.py
	$(BIN)/python docs/generate_mr2.py
	$(BIN)/python benchmarks/case_studies.py docs
	$(BIN)/python benchmarks/demo.py docs
	$(BIN)/python benchmarks/loss_cost.py docs
	$(BIN)/python benchmarks/data_cost.py docs
	$(BIN)/python benchmarks/train_cost.py docs
	$(BIN)/python benchmarks/budget_cost.py docs
	$(BIN)/python benchmarks/labels.py docs
	$(BIN)/python benchmarks/sklearn_cost.py docs
	$(BIN)/python benchmarks/audit_cost.py docs
	$(BIN)/python benchmarks/case_study_pictures.py
	$(BIN)/mkdocs build --strict  # without --quiet, which hides the warnings that --strict counts

clean:
	rm -rf .venv build dist site classgap-demo runs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/installed: pyproject.toml constraints.txt src/classgap/_version.py
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
