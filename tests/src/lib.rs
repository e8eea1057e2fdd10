//! End-to-end tests, the tidy test and fixtures.
