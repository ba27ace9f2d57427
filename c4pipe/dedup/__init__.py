"""Job 2: work files to a corpus with the newest page of each URL and one copy of each repeated span."""
