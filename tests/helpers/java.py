"""How tests start Java where c4pipe does not."""

QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Java with its first compiler and its simplest collector alone, as c4pipe starts Spark: it starts in less time."""
