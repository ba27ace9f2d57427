"""Where the rules come from: each rule names its source."""

PAPER = "T5 paper (Raffel et al. 2020), 2.2"
PAPER_VARIANTS = "T5 paper, 3.4.1"
TFDS = "TensorFlow Datasets, c4 3.1.0"
MC4 = "mT5 paper (Xue et al. 2021), 3.1"
DOLMA = "Dolma 1.2.1, tagger c4_v2 (taggers/c4.py) and configs/c4-replication/mixer.yaml"
