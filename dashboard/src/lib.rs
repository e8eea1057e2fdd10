//! The native window: scalars, histograms, graph, timeline and ops of a run.
