//! Small images in place of dots: cut from the sheet that an embedding's configuration names.

use crate::media::decode::{Picture, decoded};
use summaries::Sprites;

/// A sheet of images, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct SpriteSheet {
    pub picture: Picture,
    /// Width and height of an image, pixels.
    size: [usize; 2],
}

impl SpriteSheet {
    /// Decodes a sheet and checks that it has room for an image.
    pub fn read(sprites: &Sprites) -> Result<Self, String> {
        let picture = decoded(&sprites.file)?;
        let size = sprites.size.map(|side| side as usize);
        let can_fit = size.iter().zip(picture.size).all(|(side, sheet_side)| (1..=sheet_side).contains(side));
        if can_fit {
            return Ok(Self { picture, size });
        }
        let ([width, height], [sheet_w, sheet_h]) = (size, picture.size);
        Err(format!("images of {width} x {height} pixels do not fit into a sheet of {sheet_w} x {sheet_h}"))
    }

    /// Returns the corners of a vector's image as shares of the sheet's width and height; `None` beyond its end.
    pub fn uv_rect(&self, i: usize) -> Option<[[f32; 2]; 2]> {
        let [sheet_w, sheet_h] = self.picture.size;
        let [width, height] = self.size;
        let n_columns = sheet_w / width;
        let corner = [i % n_columns * width, i / n_columns * height];
        let share = |[x, y]: [usize; 2]| [x as f32 / sheet_w as f32, y as f32 / sheet_h as f32];
        (corner[1] + height <= sheet_h).then(|| [share(corner), share([corner[0] + width, corner[1] + height])])
    }

    /// Returns the height of an image divided by its width.
    pub fn aspect(&self) -> f32 {
        self.size[1] as f32 / self.size[0] as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_lie_row_by_row() {
        let picture = Picture { size: [20, 8], rgba: Vec::new() };
        let sheet = SpriteSheet { picture, size: [10, 4] };
        assert_eq!(sheet.uv_rect(0), Some([[0.0, 0.0], [0.5, 0.5]]));
        assert_eq!(sheet.uv_rect(3), Some([[0.5, 0.5], [1.0, 1.0]]));
        assert_eq!(sheet.uv_rect(4), None);
        assert_eq!(sheet.aspect(), 0.4);
        let file = b"no picture".to_vec();
        assert!(SpriteSheet::read(&Sprites { file, size: [1, 1] }).unwrap_err().contains("no PNG or JPEG"));
    }
}
