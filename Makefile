# Every target sets up what it needs. PYTHON is any Python 3.10 or newer.
PYTHON ?= python3

.PHONY: help setup demo test parity engines spark flink prism dataflow bench fuzz lint clean

help:
	@echo "make demo   build a corpus from the sample crawl in samples/"
	@echo "make test   lint, types, all tests, parity, and engines in short"
	@echo "make parity c4pipe against TensorFlow Datasets, page for page"
	@echo "make engines  the same corpus from Spark, Flink and Prism, clusters of this machine (or make spark, flink, prism)"
	@echo "make dataflow  the jobs that Beam would send to Dataflow, and the workers' package"
	@echo "make bench  throughput on a made crawl, and beside TensorFlow Datasets and datatrove"
	@echo "make fuzz   reader and rules on bytes made to break them, for FUZZ_SECONDS (60)"
	@echo "make setup  .venv with .venv/bin/c4pipe"

setup: .venv/c4pipe.stamp

.venv/bin/python:
	PYTHON="$(PYTHON)" scripts/venv

.venv/c4pipe.stamp: .venv/bin/python pyproject.toml constraints.txt $(wildcard c4pipe/*.c)
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable . --constraint constraints.txt
	@touch $@

.venv/test.stamp: .venv/c4pipe.stamp
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,tensorflow,consumers,examples]' --constraint constraints.txt
	@touch $@

.venv/parity.stamp: .venv/c4pipe.stamp
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[parity]' --constraint constraints.txt
	@touch $@

.venv/fuzz.stamp: .venv/c4pipe.stamp
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]' --constraint constraints.txt
	@touch $@

demo: setup
	scripts/demo

lint: .venv/test.stamp
	scripts/lint

test: .venv/test.stamp
	scripts/lint
	scripts/test
	$(MAKE) --no-print-directory parity
	.venv/bin/python engines/matrix.py --short

parity: .venv/parity.stamp
	.venv/bin/python parity/compare.py

engines: .venv/c4pipe.stamp
	.venv/bin/python engines/matrix.py

spark: .venv/c4pipe.stamp
	.venv/bin/python engines/matrix.py --only local-1,spark-local,spark,spark-killed

flink: .venv/c4pipe.stamp
	.venv/bin/python engines/matrix.py --only local-1,flink

prism: .venv/c4pipe.stamp
	.venv/bin/python engines/matrix.py --only local-1,prism

dataflow: .venv/c4pipe.stamp
	.venv/bin/python engines/dataflow.py

bench: .venv/parity.stamp
	.venv/bin/python benchmarks/throughput.py
	.venv/bin/python benchmarks/peers.py --write

fuzz: .venv/fuzz.stamp
	scripts/fuzz

clean:
	rm -rf .venv demo-corpus build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
