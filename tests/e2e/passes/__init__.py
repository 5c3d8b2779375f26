"""What ran of the end-to-end tests, on which commit, and what of the code has changed since: the parts of tests/e2e/ledger.py."""
