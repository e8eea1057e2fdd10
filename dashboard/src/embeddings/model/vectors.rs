//! Colours, labels and search matches of vectors from their metadata, and the scaling of layouts to the picture.

use std::collections::BTreeMap;
use summaries::{Embedding, projection::Position};
use ui::{
    address::{Accepts, Value},
    filter::Filter,
};

/// Values of a column with a colour of their own, at most.
pub const MAX_GROUPS: usize = 12;

/// The meaning of a vector's colour.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Coloring {
    /// None: all vectors have the same colour.
    #[default]
    Plain,
    /// By a number, on a scale from the least to the greatest.
    Numbers {
        /// The position of each vector's number on the scale, 0 to 1; NaN without a number.
        shares: Vec<f64>,
        /// Least and greatest.
        extent: [f64; 2],
    },
    /// By a word.
    Words {
        /// The index of each vector's word; [`MAX_GROUPS`] for less frequent words.
        groups: Vec<usize>,
        /// The words, the most frequent first.
        words: Vec<String>,
        /// The number of words that share the last colour.
        n_unlisted: usize,
    },
}

impl Coloring {
    /// Returns the colours by a column: by number if the cells are many different numbers, else by word.
    pub fn by_column(embedding: &Embedding, column: Option<usize>) -> Self {
        let Some(column) = column.filter(|c| *c < embedding.columns.len()) else { return Self::Plain };
        let cells = || embedding.metadata.iter().map(|row| row[column].as_str());
        let numbers: Vec<f64> = cells().map(|cell| cell.trim().parse().unwrap_or(f64::NAN)).collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        cells().for_each(|cell| *counts.entry(cell).or_default() += 1);
        let are_all_numbers = numbers.iter().zip(cells()).all(|(x, cell)| x.is_finite() || cell.is_empty());
        if are_all_numbers && counts.len() > MAX_GROUPS {
            let finite = numbers.iter().copied().filter(|x| x.is_finite());
            let extent = finite.fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], x| [lo.min(x), hi.max(x)]);
            let width = (extent[1] - extent[0]).max(f64::MIN_POSITIVE);
            return Self::Numbers { shares: numbers.iter().map(|x| (x - extent[0]) / width).collect(), extent };
        }
        let mut words: Vec<(&str, usize)> = counts.into_iter().collect();
        words.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let n_unlisted = words.len().saturating_sub(MAX_GROUPS);
        words.truncate(MAX_GROUPS);
        let idx_of: BTreeMap<&str, usize> = words.iter().enumerate().map(|(i, (word, _))| (*word, i)).collect();
        let groups = cells().map(|cell| idx_of.get(cell).copied().unwrap_or(MAX_GROUPS)).collect();
        Self::Words { groups, words: words.into_iter().map(|(word, _)| word.to_owned()).collect(), n_unlisted }
    }
}

/// The column that gives colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorBy {
    /// The first column that distinguishes groups of vectors, or none.
    #[default]
    Auto,
    /// The same colour for all vectors.
    Nothing,
    /// A column of the metadata.
    Column(usize),
}

impl Value for ColorBy {
    fn accepts() -> Accepts {
        Accepts::Number
    }

    fn texts(&self) -> Vec<String> {
        match self {
            Self::Auto => Vec::new(),
            Self::Nothing => vec!["-1".to_owned()],
            Self::Column(column) => vec![column.to_string()],
        }
    }

    fn from_texts<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<Self> {
        let column: i64 = texts.next()?.parse().ok()?;
        Some(usize::try_from(column).map_or(Self::Nothing, Self::Column))
    }
}

impl ColorBy {
    /// Returns the index of the column, if there is one.
    pub fn column(self, embedding: &Embedding) -> Option<usize> {
        let distinguishes = |column: &usize| match Coloring::by_column(embedding, Some(*column)) {
            Coloring::Plain => false,
            Coloring::Numbers { .. } => true,
            Coloring::Words { words, n_unlisted, .. } => n_unlisted == 0 && words.len() < embedding.metadata.len(),
        };
        match self {
            Self::Auto => (0..embedding.columns.len()).find(distinguishes),
            Self::Nothing => None,
            Self::Column(column) => Some(column),
        }
    }
}

/// Returns the label of the `i`-th vector: its cell in `column`, or else its index.
pub fn label(embedding: &Embedding, column: usize, i: usize) -> String {
    let text = embedding.metadata.get(i).and_then(|row| row.get(column)).filter(|text| !text.is_empty());
    text.cloned().unwrap_or_else(|| format!("vector {i}"))
}

/// Returns the indices of the vectors that match a filter in any column; none for an empty filter.
pub fn matching(embedding: &Embedding, filter: &Filter) -> Vec<usize> {
    if filter.text().is_empty() {
        return Vec::new();
    }
    let passes = |i: &usize| match embedding.metadata.get(*i) {
        Some(row) => row.iter().any(|cell| filter.matches(cell)),
        None => filter.matches(&i.to_string()),
    };
    (0..embedding.vectors.len()).filter(passes).collect()
}

/// Moves and scales a layout so that nearly all points lie within the unit ball.
pub fn scaled(places: &[Position]) -> Vec<Position> {
    let n = places.len().max(1) as f32;
    let middle = [0, 1, 2].map(|d| places.iter().map(|p| p[d]).sum::<f32>() / n);
    let radius = |p: &Position| (0..3).map(|d| (p[d] - middle[d]).powi(2)).sum::<f32>().sqrt();
    let mut radii: Vec<f32> = places.iter().map(radius).collect();
    radii.sort_by(f32::total_cmp);
    // The 99th percentile, so that a few outliers do not shrink the others.
    let reach = radii.get(radii.len().saturating_sub(1) * 99 / 100).copied().unwrap_or(0.0);
    let scale = if reach > 0.0 { 1.0 / reach } else { 0.0 };
    places.iter().map(|p| [0, 1, 2].map(|d| (p[d] - middle[d]) * scale)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use summaries::projection::Vectors;

    fn embedding(cells: &[&str]) -> Embedding {
        Embedding {
            vectors: Vectors::new(1, vec![0.0; cells.len()]),
            columns: vec!["c".into()],
            metadata: cells.iter().map(|cell| vec![(*cell).to_owned()]).collect(),
            ..Embedding::default()
        }
    }

    #[test]
    fn few_words_many_words_and_numbers() {
        let Coloring::Words { groups, words, n_unlisted } = Coloring::by_column(&embedding(&["b", "a", "b"]), Some(0))
        else {
            panic!()
        };
        assert_eq!((groups, words, n_unlisted), (vec![0, 1, 0], vec!["b".to_owned(), "a".to_owned()], 0));
        let many: Vec<String> = (0..20).map(|i| format!("w{i}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let Coloring::Words { groups, n_unlisted, .. } = Coloring::by_column(&embedding(&many), Some(0)) else {
            panic!()
        };
        assert_eq!((n_unlisted, groups.iter().filter(|g| **g == MAX_GROUPS).count()), (8, 8));
        let numbers: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let Coloring::Numbers { shares, extent } = Coloring::by_column(&embedding(&numbers), Some(0)) else { panic!() };
        assert_eq!((shares[19], extent), (1.0, [0.0, 19.0]));
        assert_eq!(Coloring::by_column(&embedding(&["a"]), None), Coloring::Plain);
        assert_eq!(Coloring::by_column(&embedding(&["a"]), Some(7)), Coloring::Plain);
        assert_eq!(ColorBy::Auto.column(&embedding(&["b", "a", "b"])), Some(0));
        assert_eq!(ColorBy::Auto.column(&embedding(&many)), None, "as many words as vectors distinguish no groups");
        assert_eq!(ColorBy::Auto.column(&embedding(&numbers)), Some(0));
        assert_eq!(ColorBy::Column(0).column(&embedding(&many)), Some(0));
    }

    #[test]
    fn search_labels_and_fit() {
        let embedding = embedding(&["cat", "dog", ""]);
        let mut filter = Filter::default();
        assert!(matching(&embedding, &filter).is_empty());
        filter.set("^d");
        assert_eq!(matching(&embedding, &filter), [1]);
        assert_eq!((label(&embedding, 0, 1), label(&embedding, 0, 2)), ("dog".into(), "vector 2".into()));
        assert_eq!(scaled(&[[1.0, 0.0, 0.0], [3.0, 0.0, 0.0]]), [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]);
        assert!(scaled(&[]).is_empty());
    }
}
