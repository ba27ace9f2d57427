# Every target sets up what it needs. PYTHON is any Python 3.10 or newer.
PYTHON ?= python3

# The tests without a marker: pyproject.toml says what each marker means.
UNIT = not (tensorflow or consumers or examples or optional or torch or slurm or beam or ray or spark or docs or tune or browser or slow)

SPARK = spark-local,spark,spark-submit,spark-killed,spark-speculation,spark-connect,spark-connect-killed,spark-3.5-local,spark-3.5,beam-spark-local,beam-spark,beam-spark-submit,beam-spark-killed

# With it, each of the thousands of processes of the tests would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo site check test tests beside-tests torch slurm parity engines engines-short spark ray flink prism dataflow bench fuzz lint clean

help:
	@echo "make setup     install c4pipe into .venv: .venv/bin/c4pipe"
	@echo "make demo      build a corpus from the sample crawl in samples/"
	@echo "make site      build the documentation as a site: build/site/index.html"
	@echo "make check     lint, types, imports, and the unit tests, without TensorFlow: a few minutes"
	@echo "make test      lint, types, imports, all tests, parity, and the short test of the engines"
	@echo "make parity    compare c4pipe with TensorFlow Datasets, datatrove and Dolma, page by page"
	@echo "make engines   build the same corpus on Slurm, Ray, Spark, Flink and Prism, on this machine (or make spark, ray, flink, prism)"
	@echo "make dataflow  test the jobs that Beam would send to Dataflow, and the package for its workers"
	@echo "make bench     measure throughput beside TensorFlow Datasets, datatrove, Dolma, seqio and others: 20 minutes; fails where a goal is not met"
	@echo "make fuzz      give damaged bytes to the reader and the rules, for FUZZ_SECONDS (60)"
	@echo "make clean     delete .venv and everything that was built"

setup: .venv/c4pipe.stamp
	@.venv/bin/c4pipe --version

.venv/venv.stamp:
	PYTHON="$(PYTHON)" scripts/venv
	@touch $@

PACKAGE = .venv/venv.stamp pyproject.toml scripts/install $(wildcard c4pipe/native/*.c c4pipe/native/text/*)

.venv/c4pipe.stamp: $(PACKAGE) requirements/setup.txt
	PYTHON="$(PYTHON)" scripts/install setup
	@touch $@

.venv/check.stamp: $(PACKAGE) requirements/check.txt
	PYTHON="$(PYTHON)" scripts/install check
	@touch .venv/c4pipe.stamp $@

# Everything that `make test` needs, in one installation: each one builds the package again.
.venv/test.stamp: $(PACKAGE) requirements/test.txt
	PYTHON="$(PYTHON)" scripts/install test
	@touch .venv/c4pipe.stamp .venv/check.stamp .venv/parity.stamp .venv/spark.stamp .venv/docs.stamp $@

.venv/parity.stamp .venv/spark.stamp .venv/docs.stamp .venv/fuzz.stamp: .venv/%.stamp: $(PACKAGE) requirements/%.txt
	PYTHON="$(PYTHON)" scripts/install $*
	@touch .venv/c4pipe.stamp $@

demo: setup
	scripts/demo

site: .venv/docs.stamp
	.venv/bin/python -m mkdocs build --strict

lint: .venv/check.stamp
	scripts/lint

check: .venv/check.stamp
	scripts/lint
	scripts/test -m "$(UNIT)"

test: .venv/test.stamp
	scripts/lint
	$(MAKE) --no-print-directory --jobs=2 DATATROVE=--short tests beside-tests

tests: .venv/test.stamp
	scripts/test -m "not torch and not slurm"

# Tests often wait for servers and other processes: two cores have time for this, too. The output of each target comes at its end.
beside-tests:
	@$(MAKE) --no-print-directory --output-sync=target parity engines-short torch slurm

torch: .venv/test.stamp
	scripts/torch

slurm: .venv/test.stamp
	scripts/slurm

parity: .venv/parity.stamp
	.venv/bin/python parity/compare.py
	.venv/bin/python parity/datatrove_compare.py $(DATATROVE)
	.venv/bin/python parity/fineweb_2_compare.py --pages 20
	.venv/bin/python parity/near_compare.py $(DATATROVE)

engines-short: .venv/spark.stamp
	.venv/bin/python engines/matrix.py --short

engines: .venv/spark.stamp
	.venv/bin/python engines/matrix.py

spark: .venv/spark.stamp
	.venv/bin/python engines/matrix.py --only local-1,$(SPARK)

ray: .venv/spark.stamp
	.venv/bin/python engines/matrix.py --only local-1,ray,ray-killed,ray-lost-node

flink: .venv/spark.stamp
	.venv/bin/python engines/matrix.py --only local-1,flink
	.venv/bin/python engines/slots.py

prism: .venv/spark.stamp
	.venv/bin/python engines/matrix.py --only local-1,prism

dataflow: .venv/c4pipe.stamp
	.venv/bin/python engines/dataflow.py

bench: .venv/parity.stamp
	.venv/bin/python benchmarks/bench.py

fuzz: .venv/fuzz.stamp
	scripts/fuzz

clean:
	rm -rf .venv demo-corpus build dist wheelhouse *.egg-info c4pipe/native/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis
