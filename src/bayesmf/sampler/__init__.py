"""Chains of Gibbs sweeps."""
