//! Symbols from text files: the kernel's list and the maps of just-in-time compilers.

/// Functions in order of their addresses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SymbolList {
    /// Begin, end (0: up to the next), name.
    rows: Vec<(u64, u64, String)>,
}

impl SymbolList {
    /// Parses lines `ffffffff81000000 T name [module]`. The list is empty where the kernel hides its addresses (all
    /// zero).
    pub(super) fn kernel(text: &str) -> SymbolList {
        SymbolList::from_rows(text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|a| *a > 0)?;
            let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
            is_code.then_some((address, 0, words.next()?.to_owned()))
        }))
    }

    /// Parses lines `START SIZE name with spaces`, with hexadecimal numbers. Of two functions at one address the later
    /// line counts, since code may be overwritten.
    pub(super) fn perf_map(text: &str) -> SymbolList {
        SymbolList::from_rows(text.lines().filter_map(|line| {
            let mut words = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            let (start, size) = (number()?, number()?);
            Some((start, start.saturating_add(size), words.next()?.to_owned()))
        }))
    }

    fn from_rows(rows: impl Iterator<Item = (u64, u64, String)>) -> SymbolList {
        let mut rows: Vec<(u64, u64, String)> = rows.collect();
        rows.sort_by_key(|(start, ..)| *start);
        SymbolList { rows }
    }

    /// Finds the name of the function at an address.
    pub(super) fn find(&self, address: u64) -> Option<&str> {
        let row = self.rows.partition_point(|(start, ..)| *start <= address).checked_sub(1)?;
        let (_, end, name) = &self.rows[row];
        (*end == 0 || address < *end).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_lists() {
        let kernel =
            SymbolList::kernel("ffff0000 T first\nffff0100 t second [mod]\nffff0080 d data\n0 T hidden\n\nx y\n");
        let found = [0xffff_0000u64, 0xffff_0090, 0xffff_0200, 1].map(|a| kernel.find(a));
        assert_eq!(found, [Some("first"), Some("first"), Some("second"), None]);
        let map = SymbolList::perf_map("7f00 10 py::f:/a b.py\n0x7f20 8 g\nbroken\n7f00 20 py::newer\n");
        let found = [0x7f0fu64, 0x7f21, 0x7f28].map(|a| map.find(a));
        assert_eq!(found, [Some("py::newer"), Some("g"), None]);
    }
}
