//! Damaged and malicious files: one line of an error, no panic, and no memory that the file does not justify.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::{fs, path::PathBuf};

use torch_dumps::{Error, groups, lifetimes, peak, read_recording, read_snapshot};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

fn line(bytes: &[u8]) -> String {
    let line = read_snapshot(bytes).unwrap_err().to_string();
    assert!(!line.contains('\n') && line.len() < 400, "{line}");
    line
}

/// Both readers and all analyses.
fn read(bytes: &[u8]) {
    if let Ok(snapshot) = read_snapshot(bytes) {
        for device in &snapshot.devices {
            let allocations = lifetimes(device);
            peak(device, &allocations);
            torch_dumps::out_of_memory(device, &allocations);
            torch_dumps::usage_by_pool(device);
        }
        torch_dumps::by_user_frame(&snapshot.stacks, &torch_dumps::live_blocks(&snapshot));
        torch_dumps::difference(&snapshot, &snapshot);
    }
    if let Ok(recording) = read_recording(bytes, 0) {
        groups(&[recording]);
    }
}

#[test]
fn a_pickle_that_calls_something_is_refused() {
    let no_dump = "it is no dump of PyTorch";
    assert_eq!(
        line(b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R."),
        format!("the file wants to call os.system: {no_dump}")
    );
    let stacked = b"\x80\x04\x95\x10\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02ls\x85\x94R\x94.";
    assert_eq!(line(stacked), format!("the file wants to call posix.system: {no_dump}"));
    assert_eq!(line(b"\x80\x02(ios\nsystem\n."), format!("the file wants to call os.system: {no_dump}"));
    assert_eq!(line(b"\x80\x02N)R."), format!("the file wants to create an object: {no_dump}"));
    assert_eq!(line(b"\x80\x02NNb."), format!("the file wants to create an object: {no_dump}"));
    assert_eq!(line(b"\x80\x02N)\x81."), format!("the file wants to create an object: {no_dump}"));
    assert_eq!(line(b"\x80\x02(Nlo."), format!("the file wants to create an object: {no_dump}"));
    assert_eq!(line(b"\x80\x02\x82\x01."), format!("the file wants to call a registered extension: {no_dump}"));
    assert_eq!(line(b"\x80\x02Pweights\n."), format!("the file wants to load an object from elsewhere: {no_dump}"));
    assert_eq!(line(b"\x80\x05\x97."), format!("the file wants to use buffers from elsewhere: {no_dump}"));
    // A name cannot be more than a line.
    assert_eq!(line(b"\x80\x02ca\x1b[2J\nb\n."), format!("the file wants to call a?[2J.b: {no_dump}"));
    let long = [b"\x80\x02c".as_slice(), &[b'x'; 100_000], b"\ny\n."].concat();
    line(&long);
}

#[test]
fn what_is_no_snapshot_says_so() {
    assert_eq!(line(b""), "byte 0: the file ends before it has any data");
    assert_eq!(line(b"PK\x03\x04"), "byte 1: no pickle of protocol 2 to 5");
    assert_eq!(line(b"\x80\x09."), "byte 2: no pickle of protocol 2 to 5");
    assert_eq!(line(b"\x80\x02}."), "the file is no memory snapshot: it has neither segments nor device traces");
    assert!(line(b"{\"segments\": [").starts_with("neither a pickle nor JSON: "));
    assert!(matches!(read_recording(b"{}".as_slice(), 0), Err(Error::OtherContent { .. })));
    assert!(matches!(read_recording(fixture("cpu.pickle").as_slice(), 0), Err(Error::OtherContent { .. })));
    assert!(matches!(read_snapshot(fixture("healthy_0").as_slice()), Err(Error::OtherContent { .. })));
}

#[test]
fn malformed_pickles_are_errors() {
    for bytes in [
        b"\x80\x02.".as_slice(),
        b"\x80\x02u.",
        b"\x80\x02(u.",
        b"\x80\x02]]s.",
        b"\x80\x02N(NNu.",
        b"\x80\x02N(Ne.",
        b"\x80\x020.",
        b"\x80\x02N(0.",
        b"\x80\x02(\x86.",
        b"\x80\x02h\x07.",
        b"\x80\x02j\xff\xff\xff\xff.",
        b"\x80\x02q\x00.",
        b"\x80\x02\x8b\xff\xff\xff\xff.",
        b"\x80\x02\x91.",
        b"\x80\x02\xfe.",
    ] {
        assert!(matches!(read_snapshot(bytes), Err(Error::Pickle { .. })), "{bytes:?}");
    }
}

#[test]
fn bombs_do_no_harm() {
    // Lengths that nothing justifies.
    for start in [b"\x80\x04\x8d".as_slice(), b"\x80\x04\x8e", b"\x80\x04\x96"] {
        line(&[start, &u64::MAX.to_le_bytes(), b"x"].concat());
    }
    line(b"\x80\x02X\xff\xff\xff\xffx");
    line(b"\x80\x02\x8b\xff\xff\xff\x7fx");
    // A number of the memo that nothing justifies.
    line(b"\x80\x02Nr\xff\xff\xff\xff.");
    // Depth by marks, and by containers.
    assert!(line(&[b"\x80\x02".as_slice(), &[b'('; 100_000]].concat()).ends_with("data nested more than 1000 deep"));
    let lists = [b"\x80\x02".as_slice(), &[b']'; 100_000], &[b'a'; 99_999], b"."].concat();
    read(&lists);
    // A list that contains itself: as the segments, as their blocks.
    read(b"\x80\x02]q\0h\0a.");
    // Far more memory than the file has bytes.
    let many = [b"\x80\x02".as_slice(), &vec![b']'; 4_000_000]].concat();
    assert!(line(&many).ends_with("data that take far more memory than their file"));
}

#[test]
fn references_do_not_multiply() {
    // 100000 events, and 100000 traces that all are the same list of them.
    let mut bytes = b"\x80\x02}(X\x0d\0\0\0device_traces](".to_vec();
    bytes.extend(b"]q\0(");
    for _ in 0..100_000 {
        bytes.extend(b"}");
    }
    bytes.extend(b"e");
    for _ in 0..100_000 {
        bytes.extend(b"h\0");
    }
    bytes.extend(b"eu.");
    let snapshot = read_snapshot(bytes.as_slice()).unwrap();
    let n: usize = snapshot.devices.iter().map(|device| device.events.len()).sum();
    assert!(n < 4 * bytes.len(), "{n}");
    assert!(snapshot.warnings.keys().any(|what| what.contains("more often")), "{:?}", snapshot.warnings);
}

#[test]
fn a_truncated_file_has_what_comes_before() {
    for name in ["gpu_p2.pickle", "gpu_p5.pickle", "healthy_0"] {
        let bytes = fixture(name);
        let mut largest = 0;
        for end in (0..bytes.len()).step_by(5) {
            read(&bytes[..end]);
            let n = match (name, read_snapshot(&bytes[..end]), read_recording(&bytes[..end], 0)) {
                ("healthy_0", _, Ok(recording)) => recording.entries.len(),
                (_, Ok(snapshot), _) => {
                    assert!(snapshot.warnings.contains_key("end of the file before its data end"));
                    snapshot.devices.iter().map(|device| device.blocks.len() + device.events.len()).sum()
                }
                _ => 0,
            };
            // An event that is complete stays; the last one may lack its later fields.
            assert!(n + 1 >= largest, "{name} {end}: {n} after {largest}");
            largest = largest.max(n);
        }
        assert!(largest > 2, "{name}: {largest}");
    }
}

#[test]
fn changed_bytes_do_no_harm() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for name in ["gpu_p2.pickle", "gpu_p4.pickle", "cpu.pickle", "healthy_0", "skipped_2", "json_0.json"] {
        let original = fixture(name);
        for _ in 0..400 {
            let mut bytes = original.clone();
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes[at] ^= 1 << random(8),
                    _ => bytes.truncate(at.max(2)),
                }
            }
            read(&bytes);
        }
    }
}
