"""The code blocks of the documentation that no test runs, and why. All others are run: tests/docs/test_code_blocks.py.

An entry is a pattern of pages, a pattern of commands or blocks of Python, and the reason. The commands of c4pipe among
them are still given to its parser, and Python is compiled (tests/docs/test_pages.py).
"""

CRAWL = "it reads a crawl of Common Crawl, for hours, from the network"
NETWORK = "it downloads from the network"
RAY = "it needs a cluster of Ray; tests/runners/test_ray_runner.py does the same on nodes of one machine"
SPARK = "it needs a Spark cluster; `make spark` does the same on clusters of one machine"
GOOGLE = "it needs a project of Google Cloud, or Docker; `make dataflow` does what can be done without"
ARRAY = "it needs Slurm or AWS Batch; tests/docs/test_arrays.py runs both scripts with the variables of each scheduler"
SLURM = "it needs a Slurm cluster; tests/jobs/test_slurm.py starts one and runs the command there"
DOCKER = "it needs Docker; scripts/try_image.py builds and runs the image"
CLUSTER = "it needs Kubernetes; tests/docs/test_kubernetes.py runs the commands of the pods"
TUNE = (
    "it serves a page until it is stopped; tests/inspect/test_tune_page.py opens it, saves a recipe and builds with it"
)
PEERS = "it needs datatrove or TensorFlow Datasets; parity/migrate_compare.py runs both sides and compares their pages"
DEVELOPMENT = "it is for developers of c4pipe: it runs the tests themselves, or takes minutes to hours"

NOT_RUN = (
    ("*", "c4pipe build *CC-MAIN-*", CRAWL),
    ("*", "c4pipe clean *CC-MAIN-*", CRAWL),
    ("*", "c4pipe plan *CC-MAIN-*", CRAWL),
    ("*", "c4pipe lists fetch *", NETWORK),
    ("*", "make demo", NETWORK + "; tests/docs/test_readme.py builds the same corpus"),
    ("*", "git clone *", NETWORK),
    ("*", "make setup*", NETWORK + "; the tests run in what it installs"),
    ("*", "export PATH=*", "it is for the shell that a user types in; the tests have the path"),
    ("*", "pip install *", NETWORK),
    ("docs/slurm.md", "c4pipe *", SLURM),
    (
        "docs/reliability.md",
        "c4pipe rebuild *",
        "tests/jobs/test_rebuild.py builds the corpus of the sample crawl again",
    ),
    ("docs/batch_systems.md", "curl *", NETWORK),
    ("docs/batch_systems.md", "wc -l files.txt", "files.txt is downloaded"),
    ("docs/batch_systems.md", "*sbatch *", ARRAY),
    ("docs/batch_systems.md", "aws batch *", ARRAY),
    ("docs/beam.md", "docker *", GOOGLE),
    ("docs/beam.md", "gcloud *", GOOGLE),
    ("docs/beam.md", "python examples/*/launcher.py *", "tests/beam/test_flex_template.py runs it with these options"),
    (
        "docs/crawl.md",
        "c4pipe dedup work *",
        "it goes on with a work folder of a crawl; the tutorial's build does it too",
    ),
    (
        "docs/tutorial.md",
        "c4pipe build crawl/ *",
        "README.md has it, too: tests/docs/test_code_blocks.py runs it",
    ),
    ("docs/training.md", "litgpt pretrain *", "it trains a model; the block above it makes the data"),
    ("docs/training.md", "hf upload *", NETWORK + "; tests/report/test_card.py loads the files that it takes"),
    ("docs/beam.md", "docker *", GOOGLE),
    ("docs/beam.md", "c4pipe dedup gs://*", GOOGLE),
    ("docs/batch_systems.md", "docker *", DOCKER),
    ("docs/batch_systems.md", "kubectl *", CLUSTER),
    ("docs/beam.md", "--project *", "it is a part of the commands above it"),
    (
        "docs/token_files.md",
        "c4pipe tokens * corpus-vocab/tokenizer.json *",
        "it needs tokenizers; tests/tokens/test_tokenizers.py runs it",
    ),
    (
        "docs/token_files.md",
        "c4pipe tokens counted *",
        "it needs a corpus with --copies; tests/tokens/test_weights.py runs it with these options",
    ),
    ("docs/token_files.md", "c4pipe tokens * openai-community/gpt2 *", NETWORK),
    ("docs/beam.md", "mvn *", NETWORK),
    ("docs/beam.md", "java *", "it needs a Flink cluster; `make flink` does the same on a cluster of one machine"),
    ("docs/install.md", "cd c4pipe", "it is for the clone of the line above"),
    ("docs/warc.md", "c4pipe explain crawl/a.warc.gz *", "tests/jobs/test_warc_jobs.py explains a page of a crawl"),
    ("docs/migrate.md", "from datatrove*", PEERS),
    ("docs/migrate.md", "c4pipe build crawl *", PEERS),
    ("docs/migrate.md", "tfds build *", PEERS),
    ("docs/storage.md", "c4pipe import *", NETWORK + "; tests/io/test_hub.py does it with a server on loopback"),
    ("docs/import.md", "c4pipe import *", "tests/jobs/test_import.py runs them with files of these names"),
    ("docs/columns.md", "c4pipe *", "tests/jobs/test_columns.py runs them with other inputs"),
    ("docs/install.md", "eval *", "it is for the user's shell; tests/cli/test_command_line.py tests the completion"),
    ("docs/recipes.md", "c4pipe dedup work-*", "it goes on with work folders of two crawls"),
    ("docs/recipes.md", "c4pipe lists robots *", "the robots.txt files of a crawl are downloaded first"),
    (
        "docs/recipes.md",
        "c4pipe report corpus --opt-outs *",
        "tests/recipes/test_opt_outs.py makes the lists and runs it",
    ),
    ("docs/explain.md", "c4pipe report corpus --domains *", "tests/inspect/test_domains.py runs it with a list"),
    ("docs/runners.md", "import c4pipe*ray.init*", RAY),
    ("docs/spark.md", "mvn *", NETWORK),
    ("docs/spark.md", "java *", SPARK),
    ("docs/spark.md", "*venv_pack*", SPARK),
    ("docs/spark.md", "*spark-submit --master*", SPARK),
    ("docs/spark.md", "c4pipe dedup /shared/*", SPARK),
    ("docs/spark.md", "*start-connect-server*", SPARK),
    ("docs/spark.md", "import c4pipe*spark*", SPARK),
    ("docs/spark.md", "from c4pipe.cli.main import run*", SPARK),
    ("docs/objectives.md", "from datasets import load_dataset*", NETWORK),
    ("docs/*.md", "c4pipe tune *", TUNE),
    ("docs/choose_limits.md", "c4pipe build * tuned.toml *", TUNE),
    (
        "docs/training.md",
        "c4pipe tokens *2^29",
        "the sample crawl has 10,454 tokens; tests/tokens/ makes smaller subsets",
    ),
    (
        "docs/training.md",
        "c4pipe tokens scored *",
        "it needs a corpus with --score; tests/read/test_best_first.py runs it with these options",
    ),
    (
        "docs/training.md",
        "*python examples/pretrain.py *",
        "tests/docs/test_examples.py runs it, killed, on two hosts and on eight devices, too",
    ),
    ("docs/training.md", "python3 -m maxtext.*", "it needs MaxText and a TPU or a GPU"),
    (
        "docs/training.md",
        "python examples/ablation/ablate.py *",
        "tests/docs/test_examples.py runs it, with small corpora",
    ),
    ("*", "c4pipe vocab corpus/en:10 *", "32,000 pieces need more text than the sample crawl has"),
    ("*", "c4pipe vocab corpus --temperature *", "250,000 pieces need more text than the sample crawl has"),
    ("docs/vocabulary.md", "c4pipe vocab-report *", "it measures the vocabulary of the command before it"),
    ("ARCHITECTURE.md", "*class FewLetters*", "tests/docs/test_architecture.py adds it to a copy of the package"),
    ("CONTRIBUTING.md", "make *", DEVELOPMENT),
    ("CONTRIBUTING.md", "scripts/*", DEVELOPMENT),
    ("CONTRIBUTING.md", '{"why": *', "it is a golden case, as tests/cases/ has hundreds of"),
    ("samples/README.md", "*make_samples.py", "it writes into samples/; the command below it compares"),
)
