//! WAV files: their waveform, and parts of a file as files. No egui here.
//!
//! ```text
//! "RIFF" size "WAVE"  { id[4] size[4] bytes[size] pad-to-even }...     chunks `fmt ` and `data` count here
//! ```

use std::{io::Cursor, ops::Range};

/// Columns of the waveform, at most.
const MAX_COLUMNS: u64 = 2048;

/// A decoded WAV file.
#[derive(Clone, Debug, PartialEq)]
pub struct Wav {
    /// Frames (one sample of each channel) per second.
    pub sample_rate: u32,
    pub n_channels: u16,
    pub n_frames: u64,
    /// Least and greatest sample of all channels in equal intervals of time, -1 to 1.
    pub peaks: Vec<[f32; 2]>,
    format: Range<usize>,
    data: Range<usize>,
}

impl Wav {
    /// Decodes a file.
    ///
    /// # Errors
    /// When `bytes` are no WAV file of PCM or float samples.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let (format, data) = chunks(bytes).ok_or("no `fmt ` and `data` in it")?;
        let mut reader = hound::WavReader::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
        let spec = reader.spec();
        if spec.sample_rate == 0 || spec.channels == 0 {
            return Err("no samples per second, or no channels".into());
        }
        let n_frames = u64::from(reader.duration());
        let samples: Box<dyn Iterator<Item = hound::Result<f32>> + '_> = match spec.sample_format {
            hound::SampleFormat::Float => Box::new(reader.samples::<f32>()),
            hound::SampleFormat::Int => {
                let scale = (1_u64 << (spec.bits_per_sample.clamp(1, 32) - 1)) as f32;
                Box::new(reader.samples::<i32>().map(move |s| s.map(|s| s as f32 / scale)))
            }
        };
        let n_columns = n_frames.clamp(1, MAX_COLUMNS);
        let mut peaks = vec![[f32::INFINITY, f32::NEG_INFINITY]; n_columns as usize];
        for (i, sample) in samples.enumerate() {
            // A truncated file is shown up to its end.
            let Ok(sample) = sample else { break };
            let frame = i as u64 / u64::from(spec.channels);
            if let Some([lo, hi]) = peaks.get_mut((frame * n_columns / n_frames.max(1)) as usize) {
                (*lo, *hi) = (lo.min(sample), hi.max(sample));
            }
        }
        peaks.iter_mut().filter(|[lo, hi]| lo > hi).for_each(|peak| *peak = [0.0, 0.0]);
        Ok(Self { sample_rate: spec.sample_rate, n_channels: spec.channels, n_frames, peaks, format, data })
    }

    /// The length in seconds.
    pub fn seconds(&self) -> f64 {
        self.n_frames as f64 / f64::from(self.sample_rate)
    }

    /// The part of the file from `second` on, as a WAV file. `bytes`: the file that was decoded.
    pub fn rest_from(&self, bytes: &[u8], second: f64) -> Vec<u8> {
        // Not from the number of frames: a truncated file has less data than its header says.
        let block_align =
            bytes[self.format.clone()].get(12..14).map_or(0, |b| u64::from(u16::from_le_bytes([b[0], b[1]])));
        let skipped = (second.max(0.0) * f64::from(self.sample_rate)) as u64;
        let start = self.data.start + (skipped.min(self.n_frames) * block_align) as usize;
        let (format, data) = (&bytes[self.format.clone()], &bytes[start.min(self.data.end)..self.data.end]);
        let size = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
        let mut out = Vec::with_capacity(data.len() + format.len() + 28);
        out.extend_from_slice(b"RIFF");
        out.extend_from_slice(&size(4 + 8 + format.len() + 8 + data.len()));
        out.extend_from_slice(b"WAVEfmt ");
        out.extend_from_slice(&size(format.len()));
        out.extend_from_slice(format);
        out.extend_from_slice(b"data");
        out.extend_from_slice(&size(data.len()));
        out.extend_from_slice(data);
        out
    }
}

/// The ranges of the contents of the format chunk and of the data chunk. A chunk that is longer than the file ends with
/// the file.
fn chunks(bytes: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    if bytes.get(..4)? != b"RIFF" || bytes.get(8..12)? != b"WAVE" {
        return None;
    }
    let (mut format, mut at) = (None, 12);
    loop {
        let id = bytes.get(at..at + 4)?;
        let size = u32::from_le_bytes(bytes.get(at + 4..at + 8)?.try_into().ok()?) as usize;
        let content = at + 8..(at + 8).saturating_add(size).min(bytes.len());
        match id {
            b"fmt " => format = Some(content.clone()),
            b"data" => return Some((format?, content)),
            _ => {}
        }
        at = content.end + (size & 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(samples: &[i16], n_channels: u16) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let sample_format = hound::SampleFormat::Int;
        let spec = hound::WavSpec { channels: n_channels, sample_rate: 4, bits_per_sample: 16, sample_format };
        let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
        samples.iter().for_each(|s| writer.write_sample(*s).unwrap());
        writer.finalize().unwrap();
        bytes.into_inner()
    }

    #[test]
    fn peaks_and_parts() {
        let bytes = file(&[0, 16384, -32768, 0, 8192, 8192, 0, 0], 2);
        let wav = Wav::read(&bytes).unwrap();
        assert_eq!((wav.n_frames, wav.seconds(), wav.n_channels), (4, 1.0, 2));
        assert_eq!(wav.peaks, [[0.0, 0.5], [-1.0, 0.0], [0.25, 0.25], [0.0, 0.0]]);
        assert_eq!(wav.rest_from(&bytes, 0.0), bytes);
        let rest = wav.rest_from(&bytes, 0.5);
        assert_eq!(Wav::read(&rest).unwrap().peaks, [[0.25, 0.25], [0.0, 0.0]]);
        assert_eq!(Wav::read(&wav.rest_from(&bytes, 9.0)).unwrap().n_frames, 0);
        // Of the fourth frame only the first channel is there.
        let truncated = &bytes[..bytes.len() - 2];
        let rest = Wav::read(truncated).unwrap().rest_from(truncated, 0.5);
        assert_eq!(rest[rest.len() - 6..], bytes[bytes.len() - 8..bytes.len() - 2]);
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_a_shorter_sound(at in 0usize..60, byte in any::<u8>(), n in 0usize..60) {
            let mut bytes = file(&[1, 2, 3, 4], 1);
            let n_bytes = bytes.len();
            bytes[at % n_bytes] = byte;
            bytes.truncate(n.min(n_bytes));
            if let Ok(wav) = Wav::read(&bytes) {
                let _ = wav.rest_from(&bytes, 0.3);
            }
        }
    }
}
