"""One page for each URL, one of each repeated span: units, hashes, the exchange, and its steps."""
