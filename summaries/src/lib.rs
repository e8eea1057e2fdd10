//! Event files: write, follow, read; logdirs and series.
