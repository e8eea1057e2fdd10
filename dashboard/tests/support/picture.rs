//! Pictures of panels compared with those in `tests/snapshots`.

use super::raster::Pixels;
use std::{
    fs,
    io::{BufReader, Cursor},
    path::{Path, PathBuf},
};

/// A pixel is another one where a channel is this far off: fractions that processors round differently stay below.
const OTHER: u8 = 24;
/// Pixels that may be other ones: half of a letter.
const FORGIVEN: usize = 12;
/// Set to anything, it writes the pictures in place of comparing them.
const UPDATE: &str = "STEPSCOPE_UPDATE_SNAPSHOTS";

/// Compares a picture with the one that is kept.
///
/// # Errors
/// What to do, where they are not the same: the new picture and one of the differences lie in the target folder then.
pub fn check(name: &str, new: &Pixels) -> Result<(), String> {
    let new = &coarse(new);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.png"));
    if std::env::var_os(UPDATE).is_some() {
        return write(&kept, new).map_err(|error| format!("{}: {error}", kept.display()));
    }
    let old = match read(&kept) {
        Ok(old) => old,
        Err(why) => {
            return Err(format!(
                "{name}: no picture to compare with ({}: {why}); {}",
                kept.display(),
                advice(name, new)
            ));
        }
    };
    if (old.width, old.height) != (new.width, new.height) {
        let (was, is) = ((old.width, old.height), (new.width, new.height));
        return Err(format!(
            "{name}: the picture is {is:?} pixels, the one that is kept {was:?}; {}",
            advice(name, new)
        ));
    }
    let is_other = |(a, b): (&[u8; 3], &[u8; 3])| a.iter().zip(b).any(|(a, b)| a.abs_diff(*b) > OTHER);
    let others: Vec<usize> = (0..new.rgb.len()).filter(|i| is_other((&old.rgb[*i], &new.rgb[*i]))).collect();
    if others.len() <= FORGIVEN {
        return Ok(());
    }
    let (x, y) = (others[0] % new.width, others[0] / new.width);
    let mut marked = old.clone();
    marked.rgb.iter_mut().for_each(|pixel| *pixel = pixel.map(|channel| channel / 3));
    others.iter().for_each(|i| marked.rgb[*i] = [255, 0, 80]);
    let marks = fresh(name, "changed", &marked);
    Err(format!(
        "{name}: {} of {} pixels are other ones, the first at {x}, {y} (marked in {marks}); {}",
        others.len(),
        new.rgb.len(),
        advice(name, new)
    ))
}

/// With 16 levels a channel: a third of the bytes, and as legible.
fn coarse(picture: &Pixels) -> Pixels {
    let level = |channel: u8| (channel.saturating_add(8) / 17) * 17;
    Pixels {
        rgb: picture.rgb.iter().map(|pixel| pixel.map(level)).collect(),
        width: picture.width,
        height: picture.height,
    }
}

fn advice(name: &str, new: &Pixels) -> String {
    format!(
        "look at {}; if that is what it should look like, run this test again with {UPDATE}=1",
        fresh(name, "new", new)
    )
}

/// Writes a picture into the target folder; where.
fn fresh(name: &str, what: &str, picture: &Pixels) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("snapshots").join(format!("{name}.{what}.png"));
    match write(&path, picture) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("{} (which could not be written: {error})", path.display()),
    }
}

fn write(path: &Path, picture: &Pixels) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width as u32, picture.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    encoder.write_header()?.write_image_data(picture.rgb.as_flattened())?;
    fs::write(path, bytes)
}

fn read(path: &Path) -> Result<Pixels, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let mut reader =
        png::Decoder::new(BufReader::new(Cursor::new(bytes))).read_info().map_err(|error| error.to_string())?;
    let mut rgb = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let info = reader.next_frame(&mut rgb).map_err(|error| error.to_string())?;
    if info.color_type != png::ColorType::Rgb {
        return Err(format!("{:?} in place of RGB", info.color_type));
    }
    let rgb = rgb.as_chunks::<3>().0.to_vec();
    Ok(Pixels { width: info.width as usize, height: info.height as usize, rgb })
}
