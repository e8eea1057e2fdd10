//! All layers, in the order in which they are painted.

use super::{
    Areas, ClippedLayer, Layer, counters, critical_path, flows, instants, minimap, notes, open_slices, pointer, range,
    remark, ruler, selection, slices, stalls, steps,
};
use egui::Rect;

type Area = fn(&Areas) -> Rect;

fn clipped(area: Area, layer: impl Layer + 'static) -> ClippedLayer {
    ClippedLayer { layer: Box::new(layer), area }
}

/// Every layer, from the lowest to the highest. The highest layer that has a tooltip or command at the pointer gets the
/// pointer; in the ruler, lower layers place their texts first.
pub fn all() -> Vec<ClippedLayer> {
    let (body, timed): (Area, Area) = (|areas| areas.body, Areas::timed);
    vec![
        clipped(|areas| areas.minimap, minimap::Minimap::default()),
        clipped(timed, ruler::Ruler),
        clipped(timed, steps::Steps),
        clipped(body, slices::SlicesLayer::default()),
        clipped(body, counters::Counters),
        clipped(body, open_slices::OpenSlices),
        clipped(body, stalls::StallBands),
        clipped(body, instants::Instants),
        clipped(body, remark::Remark),
        clipped(body, critical_path::CriticalPaths),
        clipped(timed, range::SelectedRange),
        clipped(body, stalls::StallCulprit),
        clipped(body, flows::Flows),
        clipped(body, selection::SelectedSlice),
        clipped(timed, notes::Notes),
        clipped(timed, pointer::PointerTime),
        clipped(timed, ruler::TagLabels),
    ]
}
