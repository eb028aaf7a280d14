"""The study: protocols expand into tasks, a runner fills a store, tables and figures read it."""
