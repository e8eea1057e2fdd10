//! Framing and damage, against a straightforward reading of the format and byte by byte.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// A source that gives scripted pieces, with an end of input after each, as a growing file does.
struct Pieces(VecDeque<Vec<u8>>);

impl Pieces {
    fn new<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self(pieces.into_iter().map(<[u8]>::to_vec).collect())
    }
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(mut piece) = self.0.pop_front() else { return Ok(0) };
        let n = piece.len().min(out.len());
        out[..n].copy_from_slice(&piece[..n]);
        let rest = piece.split_off(n);
        if !rest.is_empty() {
            self.0.push_front(rest);
        }
        Ok(n)
    }
}

fn frames(records: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        append_record(&mut out, record);
    }
    out
}

/// Everything a stream finds, one line each; polled until all pieces are gone.
fn scan(mut source: Pieces) -> String {
    let mut stream = RecordStream::default();
    let mut out = String::new();
    loop {
        match stream.next(&mut source).unwrap() {
            Scan::Record(r) => out += &format!("{} {}\n", r.offset, String::from_utf8_lossy(r.data)),
            Scan::Damage(d) => out += &format!("{:?} {:?}\n", d.kind, d.bytes),
            Scan::More if source.0.is_empty() => break,
            Scan::More => {}
        }
    }
    match stream.n_waiting() {
        0 => out,
        n => out + &format!("waiting {n}\n"),
    }
}

#[track_caller]
fn check(input: &[u8], expected: &str) {
    assert_eq!(scan(Pieces::new([input])), expected);
    for at in 0..=input.len() {
        assert_eq!(scan(Pieces::new([&input[..at], &input[at..]])), expected, "split at {at}");
    }
    assert_eq!(scan(Pieces::new(input.chunks(1))), expected, "byte by byte");
}

#[test]
fn the_checksum_is_tensorflows() {
    // RFC 3720 B.4 gives crc32c of 32 zero bytes as 8a9136aa; the mask is applied by hand here.
    assert_eq!(masked_crc(&[0; 32]), 0x8a91_36aa_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    // The first record of every event file that TensorFlow writes begins like this: length 24 and its checksum.
    assert_eq!(masked_crc(&24_u64.to_le_bytes()).to_le_bytes(), [0xa3, 0x7f, 0x4b, 0x22]);
}

#[test]
fn whole_records_however_they_arrive() {
    check(&frames(&[b"one", b"", b"three"]), "0 one\n19 \n35 three\n");
    check(b"", "");
}

#[test]
fn a_torn_tail_waits() {
    let input = frames(&[b"one", b"two"]);
    check(&input[..input.len() - 1], "0 one\nwaiting 18\n");
    check(&input[..19 + 5], "0 one\nwaiting 5\n");
}

#[test]
fn bad_data_costs_one_record() {
    let mut input = frames(&[b"one", b"two", b"three"]);
    input[19 + 13] ^= 1;
    check(&input, "0 one\nBadData 19..38\n38 three\n");
}

#[test]
fn bad_length_costs_up_to_the_next_record() {
    let mut input = frames(&[b"one", b"two", b"three", b"four"]);
    input[19 + 2] ^= 1;
    check(&input, "0 one\nBadLength 19..38\n38 three\n59 four\n");
}

#[test]
fn a_huge_length_with_a_good_checksum_costs_one_record() {
    for length in [100, 1_u64 << 33, 1 << 40, u64::MAX - 4, u64::MAX] {
        let mut input = frames(&[b"one", b"two", b"three"]);
        input[19..27].copy_from_slice(&length.to_le_bytes());
        let crc = masked_crc(&length.to_le_bytes());
        input[27..31].copy_from_slice(&crc.to_le_bytes());
        let kind = if length > MAX_RECORD { "BadLength" } else { "TooLong" };
        check(&input, &format!("0 one\n{kind} 19..38\n38 three\n"));
    }
}

#[test]
fn a_large_record_that_arrives_slowly_is_whole() {
    let large = vec![b'x'; 300_000];
    let input = frames(&[b"a", &large, b"b"]);
    let out = scan(Pieces::new(input.chunks(999)));
    let offsets: Vec<_> = out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(offsets, ["0", "17", "300033"]);
}

#[test]
fn noise_is_not_held_in_memory() {
    let noise = vec![0x55; 5 << 20];
    let mut stream = RecordStream::default();
    let mut input = &noise[..];
    let mut n_damaged = 0;
    while let Scan::Damage(damage) = stream.next(&mut input).unwrap() {
        n_damaged += damage.bytes.end - damage.bytes.start;
        assert!(stream.buf.capacity() <= 4 * SEARCH_STRIDE, "{}", stream.buf.capacity());
    }
    assert_eq!(n_damaged + stream.n_waiting(), noise.len() as u64);
}

#[test]
fn noise_then_records() {
    let mut input = vec![0x55; 3 << 20];
    let begin = input.len();
    append_record(&mut input, b"found");
    let out = scan(Pieces::new([&input[..]]));
    assert_eq!(out.lines().last().unwrap(), format!("{begin} found"));
}

proptest! {
    #[test]
    fn records_come_back(records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20), chunk in 1_usize..60) {
        let mut input = Vec::new();
        for record in &records {
            append_record(&mut input, record);
        }
        let mut source = Pieces::new(input.chunks(chunk));
        let mut stream = RecordStream::default();
        let mut found = Vec::new();
        while !(source.0.is_empty() && stream.is_idle()) {
            match stream.next(&mut source).unwrap() {
                Scan::Record(record) => found.push(record.data.to_vec()),
                Scan::Damage(damage) => prop_assert!(false, "{damage:?}"),
                Scan::More => {}
            }
        }
        prop_assert_eq!(found, records);
    }

    /// One flipped bit costs one record, and every byte is a record's, a damage's or waits.
    #[test]
    fn nothing_is_lost_silently(n_records in 1_usize..12, bit in any::<prop::sample::Index>()) {
        let records: Vec<Vec<u8>> = (0..n_records).map(|i| vec![i as u8; 5 + i]).collect();
        let mut input = Vec::new();
        for record in &records {
            append_record(&mut input, record);
        }
        let bit = bit.index(input.len() * 8);
        input[bit / 8] ^= 1 << (bit % 8);
        let mut stream = RecordStream::default();
        let mut source = &input[..];
        let (mut n_found, mut n_bytes) = (0, 0);
        loop {
            match stream.next(&mut source).unwrap() {
                Scan::Record(r) => { n_found += 1; n_bytes += r.data.len() as u64 + FRAME; }
                Scan::Damage(d) => n_bytes += d.bytes.end - d.bytes.start,
                Scan::More => break,
            }
        }
        prop_assert_eq!(n_found, n_records - 1);
        prop_assert_eq!(n_bytes + stream.n_waiting(), input.len() as u64);
    }

    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        scan(Pieces::new([&bytes[..]]));
    }
}
