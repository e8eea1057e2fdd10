//! What cuDNN makes of a convolution of a residual network, by type and pass.

use cuda::backend::Lane;
use cuda::convolution::{Pass, describe};
use cuda::gpu::Gpu;
use engine::window::{Axis, WindowGeometry};
use engine::{DType, Shape};

use crate::{Report, now};

/// Images, and channels in and out.
const SIZES: (usize, usize, usize) = (64, 128, 128);
/// Rows, and columns, of an image.
const EDGE: usize = 28;
/// Convolutions that are begun at once: so many that the host's part is hidden.
const REPEATS: usize = 50;

/// Seconds of a pass, the best of some rounds; `None`: there is no cuDNN, or it knows no way.
fn seconds(gpu: &Gpu, dtype: DType, allows_tf32: bool, pass: Pass) -> Result<Option<f64>, String> {
    let axis = Axis { input: EDGE, window: 3, stride: 1, dilation: 1, before: 1, output: EDGE };
    let (batch, channels, out_channels) = SIZES;
    let axes = [Axis::single(), axis, axis];
    let g = WindowGeometry { batch, axes, n_spatial: 2, channels, filter_channels: channels, out_channels };
    let given = describe(dtype, allows_tf32, &g);
    let Some(given) = given.filter(|given| given.begin.is_none()) else { return Ok(None) };
    let (c, backend) = (given.convolution, gpu.backend());
    let Some(n_bytes) = backend.convolution_workspace(&c, pass).map_err(|e| e.to_string())? else { return Ok(None) };
    let mut values = Vec::new();
    for n in c.lengths().unwrap_or_default() {
        let (value, at) = gpu.room(dtype, Shape::new(&[n])).map_err(|e| e.to_string())?;
        gpu.zero(at, value.n_bytes()).map_err(|e| e.to_string())?;
        values.push((value, at));
    }
    let (_space, space) = gpu.room(DType::U8, Shape::new(&[n_bytes.max(1)])).map_err(|e| e.to_string())?;
    let [(_, x), (_, w), (_, y)] = &values[..] else { return Ok(None) };
    let mut best = f64::MAX;
    for _ in 0..5 {
        let begin = now();
        for _ in 0..REPEATS {
            backend.convolve(&c, pass, [*x, *w, *y], (space, n_bytes)).map_err(|e| e.to_string())?;
        }
        backend.synchronise(Lane::Compute).map_err(|e| e.to_string())?;
        best = best.min((now() - begin) / REPEATS as f64);
    }
    Ok(Some(best))
}

/// Measures all.
pub fn measure(report: &mut Report, gpu: &Gpu) {
    let (batch, channels, to) = SIZES;
    let flops = 2.0 * (batch * EDGE * EDGE * to * channels * 9) as f64;
    let types = [
        (DType::F32, false, "f32"),
        (DType::F32, true, "tf32"),
        (DType::F16, false, "f16"),
        (DType::BF16, false, "bf16"),
    ];
    for (dtype, allows_tf32, name) in types {
        for (pass, what) in [(Pass::Forward, "forward"), (Pass::ToImage, "to image"), (Pass::ToFilter, "to filter")] {
            let line = format!("cuDNN: 3 x 3, 128 x 28 x 28, batch 64, {name} {what}");
            match seconds(gpu, dtype, allows_tf32, pass) {
                Ok(Some(seconds)) => report.add(line, flops / seconds / 1e12, "TFLOP/s", ""),
                Ok(None) => println!("skipped: {line}: no cuDNN, or no way of it"),
                Err(why) => report.wrong(&line, &why),
            }
        }
    }
}
