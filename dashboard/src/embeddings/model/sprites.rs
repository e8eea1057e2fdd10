//! Small images in place of dots: cut from the sheet that an embedding's configuration names.

use crate::media::decode::{Picture, decoded};
use summaries::Sprites;

/// A sheet of images, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    pub picture: Picture,
    /// Width and height of an image, pixels.
    size: [usize; 2],
}

impl Sheet {
    pub fn read(sprites: &Sprites) -> Result<Self, String> {
        let picture = decoded(&sprites.file)?;
        let size = sprites.size.map(|side| side as usize);
        let fits = size.iter().zip(picture.size).all(|(side, of)| (1..=of).contains(side));
        if fits {
            return Ok(Self { picture, size });
        }
        let ([width, height], [sheet_w, sheet_h]) = (size, picture.size);
        Err(format!("images of {width} x {height} pixels do not fit into a sheet of {sheet_w} x {sheet_h}"))
    }

    /// The rect of a vector's image on the sheet as shares of width and height; `None` beyond its end.
    pub fn place(&self, i: usize) -> Option<[[f32; 2]; 2]> {
        let [sheet_w, sheet_h] = self.picture.size;
        let [width, height] = self.size;
        let n_columns = sheet_w / width;
        let at = [i % n_columns * width, i / n_columns * height];
        let share = |[x, y]: [usize; 2]| [x as f32 / sheet_w as f32, y as f32 / sheet_h as f32];
        (at[1] + height <= sheet_h).then(|| [share(at), share([at[0] + width, at[1] + height])])
    }

    /// Height of an image by its width.
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
        let sheet = Sheet { picture, size: [10, 4] };
        assert_eq!(sheet.place(0), Some([[0.0, 0.0], [0.5, 0.5]]));
        assert_eq!(sheet.place(3), Some([[0.5, 0.5], [1.0, 1.0]]));
        assert_eq!(sheet.place(4), None);
        assert_eq!(sheet.aspect(), 0.4);
        let file = b"no picture".to_vec();
        assert!(Sheet::read(&Sprites { file, size: [1, 1] }).unwrap_err().contains("no PNG or JPEG"));
    }
}
