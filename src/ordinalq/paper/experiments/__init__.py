"""The paper's experiments: configuration, resumable runner, store of results."""
