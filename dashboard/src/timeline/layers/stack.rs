//! All layers in their order.

use super::{
    Areas, ClippedLayer, Layer, counters, critical_path, flows, instants, minimap, notes, open_slices, pointer, range,
    remark, ruler, selection, slices, stalls, steps,
};
use egui::Rect;

type Area = fn(&Areas) -> Rect;

fn over(area: Area, layer: impl Layer + 'static) -> ClippedLayer {
    ClippedLayer { layer: Box::new(layer), area }
}

/// Every layer, from the lowest to the highest. The pointer acts on the highest layer that answers; in the ruler, texts
/// of lower layers get their positions first.
pub fn all() -> Vec<ClippedLayer> {
    let (body, timed): (Area, Area) = (|areas| areas.body, Areas::timed);
    vec![
        over(|areas| areas.minimap, minimap::Minimap::default()),
        over(timed, ruler::Ruler),
        over(timed, steps::Steps),
        over(body, slices::SlicesLayer::default()),
        over(body, counters::Counters),
        over(body, open_slices::OpenSlices),
        over(body, stalls::StallBands),
        over(body, instants::Instants),
        over(body, remark::Remark),
        over(body, critical_path::CriticalPaths),
        over(timed, range::SelectedRange),
        over(body, stalls::StallBlame),
        over(body, flows::Flows),
        over(body, selection::SelectedSlice),
        over(timed, notes::Notes),
        over(timed, pointer::PointerTime),
        over(timed, ruler::TagLabels),
    ]
}
