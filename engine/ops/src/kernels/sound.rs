//! Kernels of WAV files: 16-bit PCM from and to floats of -1 to 1, `[samples, channels]`.

use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::graph::Node;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static SOUND: &[KernelDef] = &[cpu_any("DecodeWav", decode), cpu_any("EncodeWav", |_| kernel(encode))];

/// Steps from silence to full scale.
const SCALE: f32 = 32768.0;

/// What a file holds.
struct Wav<'a> {
    rate: u32,
    channels: usize,
    data: &'a [u8],
}

/// The chunks `fmt ` and `data` of a RIFF file; others are passed over.
fn parse(file: &[u8]) -> Result<Wav<'_>, &'static str> {
    let rest = file.strip_prefix(b"RIFF").and_then(|r| r.get(4..)).and_then(|r| r.strip_prefix(b"WAVE"));
    let mut rest = rest.ok_or("it does not begin as a RIFF WAVE file")?;
    let mut format = None;
    loop {
        let (id, more) = rest.split_first_chunk::<4>().ok_or("it has no data")?;
        let (size, more) = more.split_first_chunk::<4>().ok_or("it is cut short")?;
        let size = u32::from_le_bytes(*size) as usize;
        let (body, more) = more.split_at_checked(size).ok_or("a chunk reaches past its end")?;
        // Chunks of odd sizes are padded.
        rest = more.get(size % 2..).unwrap_or_default();
        match (id, format) {
            (b"fmt ", _) => {
                let fields = body.first_chunk::<16>().ok_or("its format is cut short")?;
                let word = |i: usize| u16::from_le_bytes([fields[i], fields[i + 1]]);
                let (kind, channels, bits) = (word(0), word(2), word(14));
                if (kind != 1 && kind != 0xfffe) || bits != 16 || channels == 0 {
                    return Err("it is not 16-bit PCM");
                }
                let rate = u32::from_le_bytes([fields[4], fields[5], fields[6], fields[7]]);
                format = Some((rate, usize::from(channels)));
            }
            (b"data", Some((rate, channels))) => return Ok(Wav { rate, channels, data: body }),
            (b"data", None) => return Err("its data comes before its format"),
            _ => {}
        }
    }
}

fn decode(node: &Node) -> Built {
    let wanted = |attr: &str| -> Result<Option<usize>, KernelError> { Ok(usize::try_from(*node.int(attr)?).ok()) };
    let (channels, samples) = (wanted("desired_channels")?, wanted("desired_samples")?);
    kernel(move |c| {
        let [file] = c.input(0)?.strings()? else { return Err(KernelError::invalid("contents must be one string")) };
        let wav = parse(file).map_err(|e| KernelError::invalid(format!("this is no sound WAV file: {e}")))?;
        let n_channels = channels.unwrap_or(wav.channels);
        let has = wav.data.len() / 2 / wav.channels;
        let n = samples.unwrap_or(has);
        if n.checked_mul(n_channels).is_none_or(|n| n > 1 << 31) {
            return Err(KernelError::invalid(format!("{n} samples of {n_channels} channels are too many")));
        }
        let (words, _) = wav.data.as_chunks::<2>();
        let mut out = vec![0.0f32; n * n_channels];
        for (frame, out) in words.chunks_exact(wav.channels).zip(out.chunks_exact_mut(n_channels.max(1))) {
            for (i, o) in out.iter_mut().enumerate() {
                // More channels than there are repeat the last one, as TensorFlow does.
                *o = f32::from(i16::from_le_bytes(frame[i.min(wav.channels - 1)])) / SCALE;
            }
        }
        let rate = i32::try_from(wav.rate).map_err(|_| KernelError::invalid("its sample rate is not sound"))?;
        c.set(0, Tensor::from_vec([n, n_channels], out)?);
        c.set(1, Tensor::scalar(rate));
        Ok(())
    })
}

fn encode(c: &mut KernelContext<'_>) -> Computed {
    let (audio, rate) = (c.input(0)?, c.item::<i32>(1)?);
    let &[_, channels] = audio.dims() else {
        return Err(KernelError::invalid(format!("audio must be [samples, channels], got {}", audio.shape())));
    };
    let rate = u32::try_from(rate)
        .map_err(|_| KernelError::invalid(format!("{rate} samples a second cannot be written to a WAV file")))?;
    let file = wav(rate, channels, audio.slice::<f32>()?)?;
    c.set(0, Tensor::string(file));
    Ok(())
}

/// Samples in [-1, 1], channel by channel of each frame, as a WAV file of 16 bits:
///
/// ```text
/// "RIFF" size:u32 "WAVE" | "fmt " 16:u32 1:u16 channels:u16 rate:u32 bytes/s:u32 bytes/frame:u16 16:u16 | "data" size:u32 ...
/// ```
///
/// This is what TensorFlow writes for any number of channels.
pub(super) fn wav(rate: u32, channels: usize, samples: &[f32]) -> Result<Vec<u8>, KernelError> {
    let too_large = || KernelError::invalid("the sound is too large for a WAV file");
    let n_bytes = samples.len().checked_mul(2).and_then(|n| u32::try_from(n).ok()).ok_or_else(too_large)?;
    let size = n_bytes.checked_add(36).ok_or_else(too_large)?;
    let channels = u16::try_from(channels).map_err(|_| too_large())?;
    let frame = channels.checked_mul(2).ok_or_else(too_large)?;
    let mut out = Vec::with_capacity(44 + n_bytes as usize);
    out.extend_from_slice(b"RIFF");
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0");
    out.extend_from_slice(&channels.to_le_bytes());
    out.extend_from_slice(&rate.to_le_bytes());
    out.extend_from_slice(&rate.wrapping_mul(u32::from(frame)).to_le_bytes());
    out.extend_from_slice(&frame.to_le_bytes());
    out.extend_from_slice(b"\x10\0data");
    out.extend_from_slice(&n_bytes.to_le_bytes());
    // Clips; NaN is silence.
    samples.iter().for_each(|s| out.extend_from_slice(&((s * SCALE).round() as i16).to_le_bytes()));
    Ok(out)
}
