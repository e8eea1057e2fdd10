//! The sites of a stage: categories and names, each once, with the meaning of the category.

use super::ids::SiteIdx;
use rustc_hash::FxHashMap;
use trace_model::Category;

/// Category and name.
pub(super) struct Site {
    pub(super) category: String,
    pub(super) name: String,
    pub(super) means: Category,
}

#[derive(Default)]
pub(super) struct Sites {
    rows: Vec<Site>,
    by_key: FxHashMap<Box<[u8]>, SiteIdx>,
    key: Vec<u8>,
}

impl Sites {
    pub(super) fn get_or_add(&mut self, category: &str, name: &str) -> SiteIdx {
        self.of_raw(category.as_bytes(), name.as_bytes(), || (category.to_owned(), name.to_owned()))
    }

    /// The site for a text of the file; `make` makes category and name if it is new.
    pub(super) fn of_raw(&mut self, category: &[u8], name: &[u8], make: impl FnOnce() -> (String, String)) -> SiteIdx {
        self.key.clear();
        self.key.extend_from_slice(category);
        self.key.push(0);
        self.key.extend_from_slice(name);
        if let Some(idx) = self.by_key.get(&*self.key) {
            return *idx;
        }
        let (category, name) = make();
        let idx = SiteIdx(self.rows.len() as u32);
        self.rows.push(Site { means: Category::from_name(&category), category, name });
        self.by_key.insert(self.key.as_slice().into(), idx);
        idx
    }

    /// Category and name of a site; `None` for [`SiteIdx::NONE`] only.
    pub(super) fn get(&self, idx: SiteIdx) -> Option<&Site> {
        self.rows.get(idx.0 as usize)
    }

    pub(super) fn name(&self, idx: SiteIdx) -> &str {
        self.get(idx).map_or("", |site| &site.name)
    }

    pub(super) fn means(&self, idx: u32) -> Category {
        self.get(SiteIdx(idx)).map_or(Category::Other, |site| site.means)
    }
}
