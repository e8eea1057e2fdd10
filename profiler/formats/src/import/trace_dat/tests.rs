//! Files that trace-cmd 3.1.6 recorded (`tests/fixtures/trace-cmd/make.sh`), compared with its own report.

use crate::import::tests::{import, read_bytes, shown, warnings};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/trace-cmd").join(name)
}

#[test]
fn recordings_show_what_trace_cmd_reports() {
    for name in ["v6.dat", "v7.dat", "v7-zlib.dat", "v7-zstd.dat", "v7-tsc.dat"] {
        // The one with zlib is the plain one compressed.
        let reported = name.replace("-zlib", "");
        let (binary, text) = (import(&[fixture(name)]), import(&[fixture(&format!("{reported}.txt"))]));
        let (ours, theirs) = (shown(&binary), shown(&text));
        assert!(ours.len() > 60, "{name}: {}", ours.len());
        assert_eq!(ours, theirs, "{name}");
        // The machine's kernel leaves out the switches of its idle thread: how often shows in both alike.
        let is_missing = |warning: &&str| warning.contains("switches to threads are missing");
        let missing = |store| warnings(store).into_iter().find(is_missing).map(str::to_owned);
        assert_eq!(missing(&binary), missing(&text), "{name}");
        let others = warnings(&binary).into_iter().filter(|warning| !is_missing(warning)).count();
        let clock = if name == "v7-tsc.dat" { 1 } else { 0 };
        assert_eq!(others, clock, "{name}: {:?}", warnings(&binary));
        let marks = binary.tracks().iter().flat_map(|t| t.instants.iter());
        let marks: Vec<&str> = marks.map(|i| binary.sites()[i.site as usize].name.as_str()).collect();
        assert_eq!(marks, ["a mark"], "{name}");
    }
}

#[test]
fn cut_files_give_what_is_there_and_say_so() {
    for name in ["v6.dat", "v7.dat", "v7-zlib.dat", "v7-zstd.dat"] {
        let whole = std::fs::read(fixture(name)).unwrap();
        let all = shown(&import(&[fixture(name)])).len();
        for cut in [whole.len() - 5_000, whole.len() / 2, 300, 40] {
            match read_bytes(&whole[..cut]) {
                Ok(store) => {
                    assert!(shown(&store).len() <= all, "{name} {cut}");
                    assert!(!warnings(&store).is_empty(), "{name} cut at {cut}");
                }
                Err(error) => assert!(error.to_string().contains("ends in the middle"), "{name} cut at {cut}: {error}"),
            }
        }
    }
}

#[test]
fn what_is_not_read_says_what_to_do() {
    let mut big = std::fs::read(fixture("v6.dat")).unwrap();
    big[12] = 1;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, &big).unwrap();
    let mut store = trace_store::Store::default();
    let failed = crate::import::open(&[file.path().to_owned()]).unwrap().read_all(&mut store).unwrap_err();
    assert!(failed.to_string().contains("trace-cmd report"), "{failed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Any byte changed: an answer or an error, in bounded memory.
    #[test]
    fn damage_ends(at in any::<prop::sample::Index>(), byte in any::<u8>(), in_front in any::<bool>()) {
        let mut bytes = std::fs::read(fixture("v7-zstd.dat")).unwrap();
        let at = if in_front { at.index(400) } else { at.index(bytes.len()) };
        bytes[at] = byte;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        let mut store = trace_store::Store::default();
        if let Ok(mut import) = crate::import::open(&[file.path().to_owned()]) {
            let _ = import.read_all(&mut store);
        }
    }
}
