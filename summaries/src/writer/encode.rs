//! Encodes pixels as PNG and samples as WAV.

/// An image's pixels, row by row from the top, 8 bits a channel.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a> {
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// `width * height` times 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGBA) bytes.
    pub data: &'a [u8],
}

/// Why a value cannot be a summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The data do not fill the sizes.
    #[error("{n} values do not fill {expected}")]
    Size {
        /// The number of values.
        n: usize,
        /// The size that they should fill.
        expected: String,
    },
    /// The image cannot be encoded.
    #[error("the image cannot be encoded as PNG: {0}")]
    Png(String),
}

/// Encodes a PNG file of 8 bits per channel.
///
/// # Errors
/// When the data do not fill width and height.
pub fn png(pixels: Pixels<'_>) -> Result<Vec<u8>, ValueError> {
    let n_pixels = pixels.width as usize * pixels.height as usize;
    let color = match pixels.data.len().checked_div(n_pixels) {
        Some(1) => png::ColorType::Grayscale,
        Some(2) => png::ColorType::GrayscaleAlpha,
        Some(3) => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    };
    if n_pixels == 0 || pixels.data.len() != n_pixels * color.samples() {
        let expected = format!("{} x {} pixels of 1 to 4 channels", pixels.width, pixels.height);
        return Err(ValueError::Size { n: pixels.data.len(), expected });
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixels.width, pixels.height);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels.data));
    written.map_err(|e| ValueError::Png(e.to_string()))?;
    Ok(file)
}

/// Encodes a WAV file: RIFF with a `fmt ` chunk of 16 bytes, format 1 (PCM), 16 bits per sample.
pub(super) fn wav(samples: &[f32], n_channels: u16, sample_rate: u32) -> Result<Vec<u8>, ValueError> {
    /// The bytes of the file before its samples, without `RIFF` and the length itself.
    const HEADER: u32 = 36;
    let n_bytes = samples.len() * 2;
    let has_whole_frames = n_channels > 0 && samples.len().is_multiple_of(usize::from(n_channels));
    let Some(n_bytes) = u32::try_from(n_bytes).ok().filter(|n| has_whole_frames && *n < u32::MAX - HEADER) else {
        return Err(ValueError::Size { n: samples.len(), expected: format!("frames of {n_channels} channels") });
    };
    let frame = n_channels * 2;
    let mut file = Vec::with_capacity(8 + (HEADER + n_bytes) as usize);
    file.extend(b"RIFF");
    file.extend((HEADER + n_bytes).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend(n_channels.to_le_bytes());
    file.extend(sample_rate.to_le_bytes());
    file.extend((sample_rate.saturating_mul(u32::from(frame))).to_le_bytes());
    file.extend(frame.to_le_bytes());
    file.extend(16_u16.to_le_bytes());
    file.extend(b"data");
    file.extend(n_bytes.to_le_bytes());
    let sample = |v: &f32| ((v.clamp(-1.0, 1.0) * 32_767.0).round() as i16).to_le_bytes();
    file.extend(samples.iter().flat_map(sample));
    Ok(file)
}
