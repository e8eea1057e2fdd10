//! Images in other sizes.

use engine::graph::Attr;

use super::super::map::{Map, MapError, Mapped, One, cast};
use super::nn::{channels_first, channels_last};

pub fn map(m: &Map) -> Option<Mapped<'_>> {
    matches!(m.node.op_type.as_str(), "Resize" | "Upsample").then(|| resize(m).map(|y| vec![y]))
}

fn resize(m: &Map) -> One<'_> {
    let (dims, mode) = (m.dims(0)?, m.text("mode", "nearest"));
    let policy = m.text("keep_aspect_ratio_policy", "stretch");
    if dims.len() != 4 || m.has_attr("axes") || m.int("antialias", 0) != 0 || policy != "stretch" {
        return Err(m.uncovered("other than of whole images"));
    }
    let size = size(m, &dims)?;
    if size[..2] != dims[..2] {
        return Err(m.uncovered("of channels"));
    }
    // Operators before set 11 know no other positions.
    let positions =
        if m.opset < 11 { "asymmetric".to_owned() } else { m.text("coordinate_transformation_mode", "half_pixel") };
    let (aligned, half) = match positions.as_str() {
        "align_corners" => (true, false),
        "half_pixel" => (false, true),
        "asymmetric" => (false, false),
        _ => return Err(m.uncovered(&format!("with positions {positions}"))),
    };
    let op = match mode.as_str() {
        "linear" => "ResizeBilinear",
        "nearest" if (2..4).all(|i| rounds_alike(m, &positions, dims[i], size[i])) => "ResizeNearestNeighbor",
        "nearest" => return Err(m.uncovered("to pixels that are rounded differently")),
        _ => return Err(m.uncovered(&format!("with mode {mode}"))),
    };
    let x = m.x(0)?;
    let to = m.constant(engine::Tensor::vector(&[size[2] as i32, size[3] as i32]));
    let attrs = [("align_corners", Attr::Bool(aligned)), ("half_pixel_centers", Attr::Bool(half))];
    let y = m.op_with(op, &[channels_last(m, x)?, to], &attrs);
    channels_first(m, cast(y, x.dtype()))
}

/// The size after it, which must be what the scales say exactly: positions follow from sizes here.
fn size(m: &Map, dims: &[usize]) -> Result<Vec<usize>, MapError> {
    if m.has(3) && !m.value(3)?.is_empty() {
        return Ok(m.ints(3)?.iter().map(|n| *n as usize).collect());
    }
    let scales = match (m.has(2), m.attr_floats("scales")) {
        (true, _) => m.value(2)?.to_f64().unwrap_or_default(),
        (_, Some(scales)) => scales.iter().map(|s| f64::from(*s)).collect(),
        _ => m.value(1)?.to_f64().unwrap_or_default(),
    };
    let exact: Vec<f64> = dims.iter().zip(&scales).map(|(d, s)| *d as f64 * s).collect();
    if exact.len() != dims.len() || exact.iter().any(|n| n.fract() != 0.0) {
        return Err(m.uncovered("to sizes with fractions"));
    }
    Ok(exact.iter().map(|n| *n as usize).collect())
}

/// Whether ONNX's rounding of positions and the op's find the same pixels along an axis.
fn rounds_alike(m: &Map, positions: &str, from: usize, to: usize) -> bool {
    let (n, scale) = (from as f64, from as f64 / to as f64);
    let rounding = if m.opset < 11 { "floor".to_owned() } else { m.text("nearest_mode", "round_prefer_floor") };
    (0..to).all(|i| {
        let i = i as f64;
        let (at, ours) = match positions {
            "align_corners" => {
                let at = if to > 1 { i * (n - 1.0) / (to as f64 - 1.0) } else { 0.0 };
                (at, at.round())
            }
            "half_pixel" => ((i + 0.5) * scale - 0.5, ((i + 0.5) * scale).floor()),
            _ => (i * scale, (i * scale).floor()),
        };
        let theirs = match rounding.as_str() {
            "round_prefer_floor" => (at - 0.5).ceil(),
            "round_prefer_ceil" => (at + 0.5).floor(),
            "floor" => at.floor(),
            _ => at.ceil(),
        };
        theirs.clamp(0.0, n - 1.0) == ours.clamp(0.0, n - 1.0)
    })
}
