//! What is called the same in a range: how often, how long, and how the durations spread.

use crate::{
    format, natural,
    theme::{metrics, palette},
    widgets::describe,
};
use egui::{Align2, FontId, Mesh, Rect, Sense, Ui, pos2, vec2};
use profiler::{Category, SiteInfo, Store};
use std::ops::Range;

/// Powers of two, ns, from one bar to the next: up to 2^47 ns, a day and a half.
pub const BARS: usize = 48;

/// Slices of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// The name.
    pub name: String,
    /// What it means: `op`, `kernel`, ...
    pub category: String,
    /// How many touch the range.
    pub count: u64,
    /// Their time inside the range, ns.
    pub total_ns: i64,
    /// Their mean length, whole, ns.
    pub mean_ns: i64,
    /// The shortest, whole, ns.
    pub min_ns: i64,
    /// The longest, whole, ns.
    pub max_ns: i64,
    /// How many last from 2^i ns to twice that.
    pub bars: [u32; BARS],
}

/// Every name in a range, the one with most time first. Looks at every slice: off the UI thread.
pub fn spreads(store: &Store, range: &Range<i64>) -> Vec<Spread> {
    let empty = |site: &SiteInfo| Spread {
        name: site.name.clone(),
        category: site.category_name.clone(),
        count: 0,
        total_ns: 0,
        mean_ns: 0,
        min_ns: i64::MAX,
        max_ns: 0,
        bars: [0; BARS],
    };
    let mut rows: Vec<Option<Spread>> = vec![None; store.sites().len()];
    let lanes = store.tracks().iter().flat_map(|t| &t.lanes);
    for slice in lanes.flat_map(|lane| lane.slices(range)) {
        let Some(site) = store.sites().get(slice.site as usize).filter(|s| s.category != Category::Wait) else {
            continue;
        };
        let Some(slot) = rows.get_mut(slice.site as usize) else { continue };
        let row = slot.get_or_insert_with(|| empty(site));
        let dur = slice.dur().max(0);
        row.count += 1;
        row.total_ns += slice.end.min(range.end) - slice.start.max(range.start);
        // The sum, until all are counted.
        row.mean_ns = row.mean_ns.saturating_add(dur);
        row.min_ns = row.min_ns.min(dur);
        row.max_ns = row.max_ns.max(dur);
        row.bars[(dur.max(1).ilog2() as usize).min(BARS - 1)] += 1;
    }
    let mut out: Vec<Spread> = rows.into_iter().flatten().collect();
    out.iter_mut().for_each(|row| row.mean_ns /= (row.count as i64).max(1));
    out.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| natural::order(&a.name, &b.name)));
    out
}

/// The durations of a name as bars, each twice as long as the one before.
pub fn histogram_ui(ui: &mut Ui, spread: &Spread) {
    let p = palette(ui);
    let height = 4.0 * metrics::ROW_H;
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
    let used = |i: &usize| spread.bars[*i] > 0;
    let (Some(first), Some(last)) = ((0..BARS).find(used), (0..BARS).rfind(used)) else { return };
    let most = spread.bars.iter().max().copied().unwrap_or(0).max(1);
    let (short, long) = (format::duration_ns(spread.min_ns), format::duration_ns(spread.max_ns));
    describe(&response, || {
        let n = format::counted(spread.count, "slice");
        format!("Durations of {}: {n} from {short} to {long}", spread.name)
    });
    let painter = ui.painter_at(rect);
    painter.rect_filled(rect, f32::from(metrics::RADIUS), p.canvas);
    let inner = Rect::from_min_max(rect.min, pos2(rect.right(), rect.bottom() - metrics::AXIS_LABEL_H));
    let width = inner.width() / (last - first + 1) as f32;
    let mut mesh = Mesh::default();
    for (nth, i) in (first..=last).enumerate() {
        let left = inner.left() + nth as f32 * width;
        let full = spread.bars[i] as f32 / most as f32 * (inner.height() - metrics::GAP);
        let full = if spread.bars[i] > 0 { full.max(1.0) } else { 0.0 };
        let bar = Rect::from_min_max(pos2(left + 1.0, inner.bottom() - full), pos2(left + width - 1.0, inner.bottom()));
        mesh.add_colored_rect(bar, p.mark_of_name(&spread.name));
    }
    painter.add(mesh);
    let font = FontId::proportional(metrics::TEXT_TICK);
    let begin = format::duration_ns(1_i64 << first);
    let end = format::duration_ns(1_i64 << (last + 1).min(62));
    painter.text(rect.left_bottom() + vec2(metrics::GAP, -2.0), Align2::LEFT_BOTTOM, begin, font.clone(), p.text_weak);
    painter.text(rect.right_bottom() - vec2(metrics::GAP, 2.0), Align2::RIGHT_BOTTOM, end, font, p.text_weak);
    if let Some(at) = response.hover_pos().filter(|at| inner.contains(*at)) {
        let i = first + (((at.x - inner.left()) / width) as usize).min(last - first);
        let (from, to) = (format::duration_ns(1_i64 << i), format::duration_ns(1_i64 << (i + 1).min(62)));
        let n = format::counted(u64::from(spread.bars[i]), "slice");
        response.on_hover_text_at_pointer(format!("{from} to {to}: {n}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::demo;

    #[test]
    fn counts_times_and_bars_of_a_name() {
        let store = demo(3);
        let all = spreads(&store, &store.range());
        let names: Vec<&str> = all.iter().map(|s| s.name.as_str()).collect();
        assert!(names.contains(&"train") && !names.contains(&"idle"), "{names:?}");
        let add = all.iter().find(|s| s.name == "Add").unwrap();
        assert_eq!((add.count, add.total_ns, add.min_ns, add.max_ns), (3, 24_000, 8_000, 8_000));
        assert_eq!(add.bars[12], 3, "8,000 ns lie from 4,096 to 8,192");
        let part = spreads(&store, &(76_000..80_000));
        let add = part.iter().find(|s| s.name == "Add").unwrap();
        assert_eq!((add.count, add.total_ns), (1, 4_000), "time inside");
        assert_eq!((add.mean_ns, add.max_ns), (8_000, 8_000), "lengths whole");
    }
}
