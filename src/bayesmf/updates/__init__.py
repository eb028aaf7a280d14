"""Half-sweeps: what a prior states and a view of the data in, the factors of one side drawn."""
