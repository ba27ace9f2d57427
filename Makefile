# Every target sets up what it needs. PYTHON is any Python 3.10 or newer.
PYTHON ?= python3

# Each test belongs to the first of these targets that does not leave out one of its markers (pyproject.toml).
# LARGE: only `make test-all` has these, and scripts/torch and scripts/slurm run their own. MORE: `make test` has these, too.
LARGE = tensorflow or consumers or examples or ray or docs or tune or browser
MORE = languages or stores or beam or spark or slow
OTHERS = optional or torch or torch_current or slurm
UNIT = not ($(LARGE) or $(MORE) or $(OTHERS))

SPARK = spark-local,spark,spark-submit,spark-killed,spark-speculation,spark-connect,spark-connect-killed,spark-3.5-local,spark-3.5,beam-spark-local,beam-spark,beam-spark-submit,beam-spark-killed

# With it, each of the thousands of processes of the tests would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo site check test test-all more-tests large-tests beside-tests torch slurm parity engines engines-short spark ray flink prism dataflow bench fuzz lint clean

help:
	@echo "make setup     install c4pipe into .venv: .venv/bin/c4pipe"
	@echo "make demo      build a corpus from the sample crawl in samples/"
	@echo "make site      build the documentation as a site: build/site/index.html"
	@echo "make check     lint, types, imports, and the quick tests"
	@echo "make test      make check, and the tests of all jobs, rules and readers; with Java, of Spark"
	@echo "make test-all  make test, and all other tests, parity, and the short test of the engines; 7 GB more on the disk"
	@echo "make parity    compare c4pipe with TensorFlow Datasets, datatrove and Dolma, page by page"
	@echo "make engines   build the same corpus on Slurm, Ray, Spark, Flink and Prism, on this machine (or make spark, ray, flink, prism)"
	@echo "make dataflow  test the jobs that Beam would send to Dataflow, and the package for its workers"
	@echo "make bench     measure throughput beside TensorFlow Datasets, datatrove, Dolma, seqio and others: 20 minutes; fails where a goal is not met"
	@echo "make fuzz      give damaged bytes to the reader and the rules, for FUZZ_SECONDS (60)"
	@echo "make clean     delete .venv and everything that was built"

setup: .venv/c4pipe.stamp
	@PYTHON="$(PYTHON)" scripts/extensions
	@.venv/bin/c4pipe --version

.venv/venv.stamp:
	PYTHON="$(PYTHON)" scripts/venv
	@touch $@

# The package, editable: it is built again if its C files change. `make setup` also builds it if its extensions are missing.
.venv/c4pipe.stamp: .venv/venv.stamp pyproject.toml requirements/setup.txt requirements/build.txt scripts/install \
		$(wildcard c4pipe/native/*.c c4pipe/native/text/*)
	PYTHON="$(PYTHON)" scripts/install setup
	@touch $@

# What requirements/NAME.txt adds to it.
.venv/%.stamp: .venv/c4pipe.stamp requirements/%.txt
	PYTHON="$(PYTHON)" scripts/install $*
	@touch $@

.venv/all.stamp: .venv/c4pipe.stamp requirements/all.txt
	PYTHON="$(PYTHON)" scripts/install all
	@touch .venv/check.stamp .venv/test.stamp .venv/spark.stamp .venv/parity.stamp .venv/engines.stamp .venv/docs.stamp $@

demo: setup
	scripts/demo

site: .venv/docs.stamp
	.venv/bin/python -m mkdocs build --strict

lint: .venv/check.stamp
	scripts/lint

check: .venv/check.stamp
	scripts/lint
	scripts/test -m "$(UNIT)"

# In steps, so that each runs in an environment that has no more than it needs. Spark needs Java: no Java, no PySpark.
test: check
	$(MAKE) --no-print-directory more-tests

more-tests: .venv/test.stamp $(if $(shell command -v java),.venv/spark.stamp)
	C4PIPE_EARLIER=1 scripts/test -m "($(MORE)) and not ($(LARGE) or $(OTHERS))"

# What this machine lacks is an error there, unless C4PIPE_ALL says otherwise: make test-all C4PIPE_ALL=0
test-all: export C4PIPE_ALL ?= 1
test-all: .venv/venv.stamp
	scripts/system-packages
	$(MAKE) --no-print-directory test
	$(MAKE) --no-print-directory .venv/all.stamp
	$(MAKE) --no-print-directory --jobs=3 DATATROVE=--short large-tests beside-tests

large-tests: .venv/all.stamp
	C4PIPE_EARLIER=1 scripts/test -m "($(LARGE)) and not ($(OTHERS))"

# Tests often wait for servers and other processes: two cores have time for this, too. The output of each target comes at its end.
beside-tests:
	@$(MAKE) --no-print-directory --output-sync=target parity engines-short torch slurm

torch: .venv/all.stamp
	scripts/torch

slurm: .venv/all.stamp
	scripts/slurm

parity: .venv/parity.stamp
	.venv/bin/python parity/compare.py
	.venv/bin/python parity/datatrove_compare.py $(DATATROVE)
	.venv/bin/python parity/fineweb_2_compare.py --pages 20
	.venv/bin/python parity/near_compare.py $(DATATROVE)
	.venv/bin/python parity/migrate_compare.py

engines-short: .venv/engines.stamp
	.venv/bin/python engines/matrix.py --short

engines: .venv/engines.stamp
	.venv/bin/python engines/matrix.py

spark: .venv/engines.stamp
	.venv/bin/python engines/matrix.py --only local-1,$(SPARK)

ray: .venv/engines.stamp
	.venv/bin/python engines/matrix.py --only local-1,ray,ray-killed,ray-lost-node

flink: .venv/engines.stamp
	.venv/bin/python engines/matrix.py --only local-1,flink
	.venv/bin/python engines/slots.py

prism: .venv/engines.stamp
	.venv/bin/python engines/matrix.py --only local-1,prism

dataflow: .venv/c4pipe.stamp
	.venv/bin/python engines/dataflow.py

bench: .venv/parity.stamp
	.venv/bin/python benchmarks/bench.py

fuzz: .venv/fuzz.stamp
	scripts/fuzz

clean:
	rm -rf .venv demo-corpus build dist wheelhouse *.egg-info c4pipe/native/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis
