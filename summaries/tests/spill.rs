//! Histograms beyond the budget of memory are in a temporary file, and read back as they were.

use summaries::{Bucket, Logdir, Series, SummaryWriter, WriterOptions};

const N_STEPS: i64 = 3000;

fn buckets(tag: i64, step: i64) -> Vec<Bucket> {
    let edge = |i: i64| (tag * 1000 + i) as f64 + step as f64 / 7.0;
    (0..40).map(|i| Bucket { left: edge(i), right: edge(i + 1), count: (step % (i + 3)) as f64 }).collect()
}

#[test]
fn histograms_beyond_the_budget() {
    // SAFETY: the only test of this program, before any other thread is there.
    unsafe { std::env::set_var("STEPSCOPE_HISTOGRAM_MIB", "1") };
    let dir = tempfile::tempdir().expect("a scratch folder");
    let writer = SummaryWriter::create(dir.path(), WriterOptions::default()).expect("a writer");
    let tags = ["a", "b", "c"];
    for step in 0..N_STEPS {
        for (tag, i) in tags.iter().zip(0..) {
            writer.add_histogram_buckets(tag, &buckets(i, step), step);
        }
    }
    writer.close().expect("all written");
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).expect("a logdir");
    logdir.read_all();
    let runs = logdir.runs();
    let mut n_spilled = 0;
    for (tag, i) in tags.iter().zip(0..) {
        let Some(Series::Histogram(series)) = runs.by_name["."].series.get(*tag) else { panic!("{tag} is missing") };
        n_spilled += series.n_spilled_bytes();
        assert_eq!(series.len(), N_STEPS as usize);
        for step in 0..N_STEPS {
            let histogram = series.histogram(step as usize).expect("the temporary file is readable");
            assert_eq!(histogram.buckets, buckets(i, step), "{tag} at {step}");
        }
    }
    // 493 bytes each, less the budget and what is not worth a place in the file.
    assert!(n_spilled > 3_000_000, "{n_spilled} bytes are in the file");
    drop(runs);
    let other = logdir.runs().by_name["."].series["a"].clone();
    let Series::Histogram(other) = other else { panic!("a is a histogram") };
    assert_eq!(other.histogram(7).expect("a copy reads the same file").buckets, buckets(0, 7));
}
