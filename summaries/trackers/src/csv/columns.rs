//! The columns of a table, and the cells of its rows.

/// The columns of the step, by preference.
const STEPS: [&str; 7] = ["step", "_step", "global_step", "trainer/global_step", "iteration", "iter", "epoch"];
/// The columns of the time, in Unix seconds.
const WALLS: [&str; 4] = ["wall_time", "timestamp", "_timestamp", "time"];
/// A time before 1973 is none: such a column has durations.
const MIN_WALL: f64 = 1e8;

/// The header of a table.
#[derive(Debug, Default)]
pub(super) struct Columns {
    names: Vec<String>,
    step: Option<usize>,
    wall: Option<usize>,
}

/// The cells of a row.
#[derive(Debug)]
pub(super) struct Row<'a> {
    columns: &'a Columns,
    cells: Vec<String>,
}

impl Columns {
    pub fn parse(header: &str) -> Self {
        let names: Vec<String> = cells(header.trim_start_matches('\u{feff}'));
        let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
        let find = |wanted: &[&str]| wanted.iter().find_map(|name| names.iter().position(|column| column == name));
        Self { step: find(&STEPS), wall: find(&WALLS), names }
    }

    /// Whether there is a step, and something else.
    pub fn is_log(&self) -> bool {
        self.step.is_some() && self.names.len() > 1
    }

    /// `None` for a line that is no row of this table.
    pub fn row(&self, line: &str) -> Option<Row<'_>> {
        let cells = cells(line);
        (cells.len() == self.names.len()).then_some(Row { columns: self, cells })
    }
}

impl Row<'_> {
    /// Names and cells in the order of the names: the same after columns were added.
    pub fn content(&self) -> Vec<(&str, &str)> {
        let names = self.columns.names.iter().map(String::as_str);
        let mut content: Vec<_> = names.zip(self.cells.iter().map(String::as_str)).collect();
        content.retain(|(_, cell)| !cell.is_empty());
        content.sort_unstable();
        content
    }

    pub fn step(&self) -> Option<i64> {
        // A large whole number is not made a float.
        let cell = self.cells.get(self.columns.step?)?.trim();
        cell.parse().ok().or_else(|| Some(cell.parse::<f64>().ok().filter(|step| step.is_finite())? as i64))
    }

    pub fn wall(&self) -> Option<f64> {
        let wall = self.cells.get(self.columns.wall?)?.trim().parse::<f64>().ok()?;
        (wall >= MIN_WALL && wall.is_finite()).then_some(wall)
    }

    /// The numbers of the row, but for its step and its time.
    pub fn scalars(&self) -> impl Iterator<Item = (&str, f64)> {
        let wall = self.columns.wall.filter(|_| self.wall().is_some());
        let step = self.columns.step.filter(|_| self.step().is_some());
        let cells = self.columns.names.iter().zip(&self.cells).enumerate();
        let cells = cells.filter(move |(i, _)| Some(*i) != step && Some(*i) != wall);
        cells.filter_map(|(_, (name, cell))| Some((name.as_str(), cell.trim().parse().ok()?)))
    }
}

/// The cells of a line. One that has a line's end in quotes is cut there.
fn cells(line: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line.as_bytes());
    let record = reader.records().next().and_then(Result::ok);
    record.map(|record| record.iter().map(str::to_owned).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_steps_and_times() {
        let columns = Columns::parse("\u{feff}loss, step ,time,\"a,b\",text");
        let row = columns.row("0.5,9007199254740993,0.25,nan,hello").unwrap();
        assert_eq!((row.step(), row.wall()), (Some(9_007_199_254_740_993), None));
        let scalars: Vec<_> = row.scalars().collect();
        assert_eq!(scalars[..2], [("loss", 0.5), ("time", 0.25)]);
        assert!(scalars[2].0 == "a,b" && scalars[2].1.is_nan() && scalars.len() == 3);
        let row = columns.row(",,1700000000.5,-inf,").unwrap();
        assert_eq!((row.step(), row.wall()), (None, Some(1_700_000_000.5)));
        assert_eq!(row.scalars().collect::<Vec<_>>(), [("a,b", f64::NEG_INFINITY)]);
        assert!(columns.row("1,2,3").is_none());
        assert!(!Columns::parse("step").is_log() && !Columns::parse("a,b").is_log());
    }
}
