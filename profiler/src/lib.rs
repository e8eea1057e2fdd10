//! Collects events, stores and indexes them, draws levels of detail, analyses.
