"""What is assumed: likelihood, priors and biases."""
